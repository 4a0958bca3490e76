package micro

import (
	"errors"
	"fmt"
	"strings"
)

// txtVersion opens the record, so that others at the same name are told apart.
const txtVersion = "v=aivs1"

// maxTXTString is the longest character-string of a DNS record (RFC 1035, section
// 3.3).
const maxTXTString = 255

// txtMembers are the record's names of a proof's members, in its order.
func (p *Proof) txtMembers() []struct {
	name  string
	value *string
} {
	return []struct {
		name  string
		value *string
	}{{"u", &p.URL}, {"d", &p.DOMHash}, {"t", &p.Timestamp}, {"s", &p.Signature}, {"h", &p.ScannerVersionHash}, {"o", &p.ScanOrigin}}
}

// TXT returns the proof as the character-strings of a DNS TXT record: the members
// as name=value joined by "; ", cut into strings of 255 bytes, which a resolver
// joins again. A proof with a ";" in a member has no such form.
func (p *Proof) TXT() ([]string, error) {
	var b strings.Builder
	b.WriteString(txtVersion)
	for _, m := range p.txtMembers() {
		if strings.Contains(*m.value, ";") {
			return nil, fmt.Errorf("%q: a TXT record cannot hold a ; here: percent-encode it before signing", *m.value)
		}
		b.WriteString("; " + m.name + "=" + *m.value)
	}
	var parts []string
	for text := b.String(); text != ""; {
		n := min(maxTXTString, len(text))
		parts, text = append(parts, text[:n]), text[n:]
	}
	return parts, nil
}

// ZoneFile writes the character-strings of a TXT record as the data of a line in a
// zone file (RFC 1035, section 5.1): each in quotes, with what is no printable ASCII,
// quotes and backslashes escaped.
func ZoneFile(parts []string) string {
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteByte('"')
		for _, c := range []byte(part) {
			switch {
			case c == '"' || c == '\\':
				b.WriteByte('\\')
				b.WriteByte(c)
			case c < ' ' || c > '~':
				fmt.Fprintf(&b, "\\%03d", c)
			default:
				b.WriteByte(c)
			}
		}
		b.WriteByte('"')
	}
	return b.String()
}

// ParseTXT reads a proof from the character-strings of a DNS TXT record.
func ParseTXT(parts []string) (*Proof, error) {
	members := strings.Split(strings.Join(parts, ""), ";")
	if strings.TrimSpace(members[0]) != txtVersion {
		return nil, errors.New("no AIVS-Micro record: it does not begin with " + txtVersion)
	}
	p := new(Proof)
	known := p.txtMembers()
	if len(members)-1 != len(known) {
		return nil, fmt.Errorf("%d members, an AIVS-Micro record has %d", len(members)-1, len(known))
	}
	for i, text := range members[1:] {
		name, value, ok := strings.Cut(strings.TrimSpace(text), "=")
		if !ok || name != known[i].name {
			return nil, fmt.Errorf("member %d is %q, want %s=…", i+1, name, known[i].name)
		}
		*known[i].value = value
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	return p, nil
}
