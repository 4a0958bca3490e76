package schema

import (
	"errors"
	"fmt"
	"slices"
)

// The errors of Follows (AAP section 9.4).
var (
	ErrForeignRequest = errors.New("the message has another request_id")
	ErrOutOfOrder     = errors.New("the message is not the next of its handshake")
	ErrOtherCard      = errors.New("the message names another card")
)

// Follows checks that next answers or continues previous: it has the same request_id, and its
// type is the next one in the order of the handshake. A check that follows a card response must
// name that card as the responder's. The error wraps ErrForeignRequest, ErrOutOfOrder or
// ErrOtherCard.
func Follows(previous, next Handshake) error {
	if previous.ID() != next.ID() {
		return fmt.Errorf("%s after %s: %w: %q, want %q", next.Type(), previous.Type(), ErrForeignRequest, clip(next.ID()), clip(previous.ID()))
	}
	if slices.Index(messageTypes, next.Type()) != slices.Index(messageTypes, previous.Type())+1 {
		return fmt.Errorf("%s after %s: %w", next.Type(), previous.Type(), ErrOutOfOrder)
	}
	check, checks := next.(*CoherenceCheck)
	if !checks {
		return nil
	}
	if card := previous.(*CardResponse).Card; card != nil && check.ResponderCardID != card.CardID {
		return fmt.Errorf("%s: %w as the responder's: %q, want %q", next.Type(), ErrOtherCard, clip(check.ResponderCardID), clip(card.CardID))
	}
	return nil
}
