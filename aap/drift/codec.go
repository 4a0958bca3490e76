package drift

import (
	"encoding/binary"
	"encoding/hex"
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

	pending uint64 // bits that are not in a whole byte, or of the last byte read
	have    int    // how many
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

// id codes an id of at most 64 bytes. A UUID takes 17 bytes.
func (c *codec) id(v *string) {
	uuid, isUUID := uuidOf(*v)
	n := len(*v)
	if isUUID {
		n = uuidMark
	}
	if whole(c, &n); n == uuidMark {
		c.bytes(uuid[:])
		if c.reading {
			*v = uuid.text()
		}
		return
	}
	if !c.reading {
		c.data = append(c.data, *v...)
	} else {
		*v = string(c.next(n))
	}
}

// traceID codes an id of any length. A UUID takes 17 bytes.
func (c *codec) traceID(v *string) {
	uuid, isUUID := uuidOf(*v)
	n := len(*v) + 1
	if isUUID {
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
	if c.bytes(uuid[:]); c.reading {
		*v = uuid.text()
	}
}

// uuidMark stands for the length of a UUID in lower case.
const uuidMark = 65

type uuid [16]byte

func uuidOf(text string) (u uuid, is bool) {
	if len(text) != 36 {
		return u, false
	}
	_, err := hex.Decode(u[:], []byte(text[:8]+text[9:13]+text[14:18]+text[19:23]+text[24:]))
	return u, err == nil && u.text() == text
}

func (u uuid) text() string {
	digits := hex.EncodeToString(u[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
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

// bits codes the lowest width bits of a number, at most 16. What is coded so ends with align.
func (c *codec) bits(v *uint16, width int) {
	if !c.reading {
		c.pending |= uint64(*v) << c.have
		for c.have += width; c.have >= 8; c.have -= 8 {
			c.data = append(c.data, byte(c.pending))
			c.pending >>= 8
		}
		return
	}
	for ; c.have < width; c.have += 8 {
		part := c.next(1)
		if part == nil {
			*v = 0
			return
		}
		c.pending |= uint64(part[0]) << c.have
	}
	*v = uint16(c.pending & (1<<width - 1))
	c.pending >>= width
	c.have -= width
}

// align ends a run of bits with a whole byte.
func (c *codec) align() {
	if !c.reading && c.have > 0 {
		c.data = append(c.data, byte(c.pending))
	}
	c.pending, c.have = 0, 0
}

// packed codes n numbers below limit, each in as few bits as limit needs.
func packed[T ~uint8 | ~uint16](c *codec, n, limit int, at func(i int) *T) {
	width := bits.Len(uint(max(limit, 1) - 1))
	for i := range n {
		number := uint16(*at(i))
		if c.bits(&number, width); int(number) >= limit {
			c.fail("the number %d, want less than %d", number, limit)
			return
		}
		*at(i) = T(number)
	}
	c.align()
}

// between codes numbers in as few bits as the difference of the greatest and the least needs.
func between[T ~uint16](c *codec, numbers []*T) {
	least, greatest := T(math.MaxUint16), T(0)
	for _, n := range numbers {
		least, greatest = min(least, *n), max(greatest, *n)
	}
	least = min(least, greatest)
	fixed16(c, &least)
	fixed16(c, &greatest)
	if greatest < least {
		c.fail("numbers from %d to %d", least, greatest)
		return
	}
	width := bits.Len16(uint16(greatest - least))
	for _, n := range numbers {
		above := uint16(*n - least)
		if c.bits(&above, width); above > uint16(greatest-least) {
			c.fail("a number above %d", greatest)
			return
		}
		*n = least + T(above)
	}
	c.align()
}

// rice codes numbers of which most are about as large as their mean (Rice's code): the lowest bits as they
// are, and what is above them as so many ones and a zero.
func rice(c *codec, numbers []uint16) {
	sum := 0
	for _, n := range numbers {
		sum += int(n)
	}
	low := uint8(max(0, bits.Len(uint(sum/len(numbers)))-1))
	if whole(c, &low); low > 16 {
		c.fail("%d low bits", low)
		return
	}
	one, zero := uint16(1), uint16(0)
	for i := range numbers {
		n := &numbers[i]
		if !c.reading {
			for range *n >> low {
				c.bits(&one, 1)
			}
			c.bits(&zero, 1)
			rest := *n & (1<<low - 1)
			c.bits(&rest, int(low))
			continue
		}
		above, more := 0, one
		for c.bits(&more, 1); more == 1; c.bits(&more, 1) {
			above++
		}
		var rest uint16
		c.bits(&rest, int(low))
		number := above<<low | int(rest)
		if *n = uint16(number); int(*n) != number {
			c.fail("the number %d is too large", number)
			return
		}
	}
	c.align()
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
