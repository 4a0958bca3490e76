package micro

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// txtVersion begins the record and distinguishes it from other records of the same name.
const txtVersion = "v=aivs1"

// maxTXTString is the longest character-string of a DNS record (RFC 1035, section 3.3).
const maxTXTString = 255

// txtMember is a member of a proof with its name in the record.
type txtMember struct {
	name  string
	value *string
}

// txtMembers returns the proof's members in record order.
func (p *Proof) txtMembers() []txtMember {
	return []txtMember{{"u", &p.URL}, {"d", &p.DOMHash}, {"t", &p.Timestamp}, {"s", &p.Signature}, {"h", &p.ScannerVersionHash}, {"o", &p.ScanOrigin}}
}

// TXT returns the proof as the character-strings of a DNS TXT record: the members as name=value
// joined by "; ", split into strings of 255 bytes, which a resolver joins again. A proof with a
// ";" in a member has no TXT form.
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

// ZoneFile returns the character-strings of a TXT record as the data of a line in a zone file
// (RFC 1035, section 5.1). Each string is quoted. Quotation marks, backslashes, and bytes that
// are not printable ASCII are escaped.
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

// ParseZoneFile reads the character-strings that ZoneFile writes or a DNS client prints: each
// quoted, with white space between them.
func ParseZoneFile(text string) (parts []string, err error) {
	for rest := strings.TrimSpace(text); rest != ""; {
		body, ok := strings.CutPrefix(rest, `"`)
		if !ok {
			return nil, fmt.Errorf("string %d of the TXT record does not begin with a quotation mark", len(parts)+1)
		}
		var part string
		if part, rest, err = zoneString(body); err != nil {
			return nil, fmt.Errorf("string %d of the TXT record: %w", len(parts)+1, err)
		}
		parts = append(parts, part)
		rest = strings.TrimSpace(rest)
	}
	return parts, nil
}

// zoneString reads one character-string up to its closing quotation mark. It also returns the
// text after it.
func zoneString(text string) (part, rest string, err error) {
	var b []byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			return string(b), text[i+1:], nil
		case c == '\\' && len(text) >= i+4 && strings.Trim(text[i+1:i+4], "0123456789") == "": // a byte's code
			code, err := strconv.ParseUint(text[i+1:i+4], 10, 8)
			if err != nil {
				return "", "", fmt.Errorf("no byte has the code \\%s", text[i+1:i+4])
			}
			b = append(b, byte(code))
			i += 3
		case c == '\\' && i+1 < len(text):
			i++
			b = append(b, text[i])
		default:
			b = append(b, c)
		}
	}
	return "", "", errors.New("it has no closing quotation mark")
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
		name, value, ok := strings.Cut(strings.TrimLeft(text, " \t\r\n"), "=") // white space after a value belongs to the value, which is signed
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

// Read reads a proof in either form: JSON, or the strings of a TXT record in zone file syntax.
func Read(data []byte) (*Proof, error) {
	text := bytes.TrimSpace(data)
	if len(data) > MaxBytes || !bytes.HasPrefix(text, []byte(`"`)) {
		return Parse(data)
	}
	parts, err := ParseZoneFile(string(text))
	if err != nil {
		return nil, err
	}
	return ParseTXT(parts)
}
