package signature

import (
	"fmt"

	"github.com/plumbline/plumbline/schema/canonical"
	"github.com/plumbline/plumbline/schema/splice"
)

// Payload returns the bytes to sign: the JCS form of a JSON object without its top-level member
// "signature". The error is ErrUnsignable with the reason: not strict JSON, not an object, or a
// number that a 64-bit float cannot represent.
func Payload(object []byte) ([]byte, error) {
	bare, _, err := splice.Cut(object, Member)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsignable, err)
	}
	payload, err := canonical.JSON(bare)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsignable, err)
	}
	return payload, nil
}
