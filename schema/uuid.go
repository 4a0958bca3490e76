package schema

import "encoding/hex"

// UUID is a UUID in 16 bytes.
type UUID [16]byte

// ParseUUID reads a UUID that is written as UUID.String writes it: 36 characters, in lower case.
func ParseUUID(text string) (u UUID, ok bool) {
	if len(text) != 36 {
		return u, false
	}
	_, err := hex.Decode(u[:], []byte(text[:8]+text[9:13]+text[14:18]+text[19:23]+text[24:]))
	return u, err == nil && u.String() == text
}

func (u UUID) String() string {
	digits := hex.EncodeToString(u[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}
