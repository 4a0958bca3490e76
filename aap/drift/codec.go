package drift

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
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

// fixed16 codes a number below 2¹⁶ of which most are large.
func fixed16[T ~uint16](c *codec, v *T) {
	if !c.reading {
		c.data = binary.LittleEndian.AppendUint16(c.data, uint16(*v))
	} else if part := c.next(2); part != nil {
		*v = T(binary.LittleEndian.Uint16(part))
	}
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

// packed codes n numbers below limit, each in as few bits as limit needs.
func packed[T ~uint8 | ~uint16](c *codec, n, limit int, at func(i int) *T) {
	width := bits.Len(uint(max(limit, 1) - 1))
	var pending uint64 // the bits that are not in a whole byte, or of the last byte read
	have := 0
	if !c.reading {
		for i := range n {
			pending |= uint64(*at(i)) << have
			for have += width; have >= 8; have -= 8 {
				c.data = append(c.data, byte(pending))
				pending >>= 8
			}
		}
		if have > 0 {
			c.data = append(c.data, byte(pending))
		}
		return
	}
	part := c.next((n*width + 7) / 8)
	if part == nil {
		return
	}
	for i := range n {
		for ; have < width; have += 8 {
			pending |= uint64(part[0]) << have
			part = part[1:]
		}
		number := int(pending & (1<<width - 1))
		if number >= limit {
			c.fail("the number %d, want less than %d", number, limit)
			return
		}
		*at(i) = T(number)
		pending >>= width
		have -= width
	}
}

// column codes a value of each of n elements: the different values, and for each element the place of its
// value among them. It is for a column that has few different values.
func column[T comparable](c *codec, n int, at func(i int) *T, each func(c *codec, v *T)) {
	var values []T
	places := make([]uint16, n)
	if !c.reading {
		for i := range places {
			place := slices.Index(values, *at(i))
			if place < 0 {
				place = len(values)
				values = append(values, *at(i))
			}
			places[i] = uint16(place)
		}
	}
	list(c, &values, n, each)
	packed(c, n, len(values), func(i int) *uint16 { return &places[i] })
	if c.reading && c.err == nil {
		for i, place := range places {
			*at(i) = values[place]
		}
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
