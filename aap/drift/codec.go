package drift

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// codec writes values to data, or reads them from it: the same statements do both, so what is
// written is what is read. After an error nothing more is read.
type codec struct {
	data    []byte
	version uint8 // of the encoding
	reading bool
	err     error
}

func (c *codec) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.data = nil
}

var errShort = errors.New("it ends too early")

// next returns the next n bytes, or nil where there are fewer.
func (c *codec) next(n int) []byte {
	if n > len(c.data) {
		c.fail("%w", errShort)
		return nil
	}
	part := c.data[:n]
	c.data = c.data[n:]
	return part
}

// whole codes an unsigned integer as a varint.
func whole[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int](c *codec, v *T) {
	if !c.reading {
		c.data = binary.AppendUvarint(c.data, uint64(*v))
		return
	}
	n, size := binary.Uvarint(c.data)
	if size <= 0 {
		c.fail("%w", errShort)
		return
	}
	if *v = T(n); uint64(*v) != n || *v < 0 {
		c.fail("the number %d is too large", n)
		return
	}
	c.data = c.data[size:]
}

func (c *codec) flag(v *bool) {
	n := uint8(0)
	if *v {
		n = 1
	}
	whole(c, &n)
	*v = n == 1
}

func (c *codec) float32(v *float32) {
	if !c.reading {
		c.data = binary.LittleEndian.AppendUint32(c.data, math.Float32bits(*v))
	} else if part := c.next(4); part != nil {
		*v = math.Float32frombits(binary.LittleEndian.Uint32(part))
	}
}

func (c *codec) float64(v *float64) {
	bits := math.Float64bits(*v)
	c.fixed64(&bits)
	*v = math.Float64frombits(bits)
}

// fixed64 codes a number, such as a hash, whose high bits are as likely as its low ones.
func (c *codec) fixed64(v *uint64) {
	if !c.reading {
		c.data = binary.LittleEndian.AppendUint64(c.data, *v)
	} else if part := c.next(8); part != nil {
		*v = binary.LittleEndian.Uint64(part)
	}
}

// bytes codes a list of a known length.
func (c *codec) bytes(v []byte) {
	if !c.reading {
		c.data = append(c.data, v...)
	} else {
		copy(v, c.next(len(v)))
	}
}

func (c *codec) digest(v *schema.Digest) { c.bytes(v[:]) }

func (c *codec) string(v *string) {
	n := len(*v)
	whole(c, &n)
	if !c.reading {
		c.data = append(c.data, *v...)
	} else {
		*v = string(c.next(n))
	}
}

// id codes an id of at most 64 bytes. A UUID takes 17 bytes.
func (c *codec) id(v *string) {
	n := len(*v)
	if _, isUUID := schema.ParseUUID(*v); isUUID {
		n = uuidMark
	}
	if whole(c, &n); n == uuidMark {
		c.uuid(v)
		return
	}
	if !c.reading {
		c.data = append(c.data, *v...)
	} else {
		*v = string(c.next(n))
	}
}

// uuid codes a UUID as schema.UUID writes it.
func (c *codec) uuid(v *string) {
	uuid, _ := schema.ParseUUID(*v)
	if c.bytes(uuid[:]); c.reading {
		*v = uuid.String()
	}
}

// traceID codes an id of any length. A UUID takes 17 bytes.
func (c *codec) traceID(v *string) {
	n := len(*v) + 1
	if _, isUUID := schema.ParseUUID(*v); isUUID {
		n = 0
	}
	if whole(c, &n); n > 0 {
		n--
		if !c.reading {
			c.data = append(c.data, *v...)
		} else {
			*v = string(c.next(n))
		}
		return
	}
	c.uuid(v)
}

// uuidMark is written in place of the length of a UUID in lower case.
const uuidMark = 65

// at codes nanoseconds since 1970; the zero time is not allowed.
func (c *codec) at(v *int64) {
	n := uint64(*v)
	c.fixed64(&n)
	*v = int64(n)
}

func (c *codec) time(v *time.Time) {
	n := v.UnixNano()
	c.at(&n)
	*v = time.Unix(0, n).UTC()
}

// list codes a list of at most most elements.
func list[T any](c *codec, v *[]T, most int, each func(c *codec, element *T)) {
	n := len(*v)
	if whole(c, &n); c.reading {
		if n > most || n > len(c.data) { // an element takes a byte at least
			c.fail("a list of %d, want at most %d", n, most)
			return
		}
		*v = nil
		if n > 0 {
			*v = make([]T, n)
		}
	}
	for i := range *v {
		each(c, &(*v)[i])
	}
}

// optional codes a value that may be absent.
func optional[T any](c *codec, v **T, code func(c *codec, v *T)) {
	present := *v != nil
	if c.flag(&present); !present {
		return
	}
	if c.reading {
		*v = new(T)
	}
	code(c, *v)
}
