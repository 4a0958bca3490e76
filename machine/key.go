package machine

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/keystore"
)

// openKey returns the public half, in hexadecimal, of the key for a purpose. It creates the
// key at the first start.
func (m *Machine) openKey(ctx context.Context, purpose keyring.Purpose) (string, error) {
	opened, err := keystore.In(m.cfg.path("keys"), purpose).Open(ctx, time.Now())
	if err != nil {
		return "", err
	}
	return opened.Entry.PublicKey, nil
}
