package drift

import (
	"encoding/binary"
	"math/bits"
)

// arithmetic is an arithmetic coder over the data of a codec: it codes each bit in as much space as the bit is
// unexpected (a binary range coder, with 32 bits). The same calls write and read: each takes the value to
// write and returns the value that was coded. What is coded so begins with arithmetic and ends with end.
type arithmetic struct {
	low     uint32 // writing: the least number that means what was written; reading: how far the number read is above it
	width   uint32 // how many numbers do; at least leastWidth between two bits
	reading bool
	data    []byte // what was written, or is not read yet

	c *codec
}

const leastWidth = 1 << 24

// chance is how probable it is that a bit is zero, learned from the bits coded with it. The zero chance is one half.
type chance struct {
	zero int16 // -1/2 to 1/2, times 2¹⁶
	seen uint8 // bits, up to forgets
}

// forgets is the number of bits after which a chance follows the newest bits.
const forgets = 30

// steps has by how much a bit moves a chance, by the number of bits before it, times 2¹⁶: the mean of the
// bits so far, and of half a zero and half a one (Krichevsky and Trofimov).
var steps = func() (table [forgets + 1]int32) {
	for seen := range table {
		table[seen] = 1 << 16 / int32(seen+2)
	}
	return table
}()

func (p *chance) learn(bit uint32) {
	to := int32(1<<15 - 1)
	if bit == 1 {
		to = -1 << 15
	}
	p.zero += int16((to - int32(p.zero)) * steps[p.seen] >> 16)
	if p.seen < forgets {
		p.seen++
	}
}

// arithmetic begins to code bits.
func (c *codec) arithmetic() *arithmetic {
	a := &arithmetic{c: c, data: c.data, reading: c.reading, width: 1<<32 - 1}
	if a.reading {
		for range 4 {
			a.low = a.low<<8 | uint32(a.next())
		}
	}
	return a
}

// end ends what the coder has written.
func (a *arithmetic) end() {
	if !a.reading {
		a.data = binary.BigEndian.AppendUint32(a.data, a.low)
	}
	if a.c.err == nil {
		a.c.data = a.data
	}
}

func (a *arithmetic) fail(format string, args ...any) { a.c.fail(format, args...) }

// next reads a byte.
func (a *arithmetic) next() byte {
	if len(a.data) == 0 {
		a.fail("%w", errShort)
		return 0
	}
	next := a.data[0]
	a.data = a.data[1:]
	return next
}

// bit codes a bit that is zero with a chance.
func (a *arithmetic) bit(p *chance, bit uint32) uint32 {
	bound := a.width >> 12 * max(1, uint32(int32(p.zero)+1<<15)>>4) // of the numbers that mean a zero
	if a.reading {
		bit = 0
		if a.low >= bound {
			bit = 1
		}
	}
	if bit == 0 {
		a.width = bound
	} else {
		a.skip(bound)
		a.width -= bound
	}
	p.learn(bit)
	if a.width < leastWidth {
		a.shift()
	}
	return bit
}

// raw codes the lowest bits of a number, at most 16, each of which is as likely to be zero as one.
func (a *arithmetic) raw(number uint32, size int) uint32 {
	a.width >>= size
	if a.reading {
		if number = a.low / a.width; number >= 1<<size {
			a.fail("a number of more than %d bits", size)
			number = 0
		}
	}
	a.skip(number * a.width)
	a.shift()
	return number
}

// skip passes the numbers that mean something else. A carry goes into the bytes that are written already.
func (a *arithmetic) skip(numbers uint32) {
	if a.reading {
		a.low -= numbers
		return
	}
	if a.low += numbers; a.low >= numbers {
		return
	}
	i := len(a.data) - 1
	for a.data[i]++; a.data[i] == 0; a.data[i]++ {
		i--
	}
}

// shift moves bytes that are certain out of the number, or into it.
func (a *arithmetic) shift() {
	for a.width < leastWidth {
		a.width <<= 8
		if a.reading {
			a.low = a.low<<8 | uint32(a.next())
		} else {
			a.data = append(a.data, byte(a.low>>24))
			a.low <<= 8
		}
	}
}

// tree codes a number of as many bits as tree has chances for: 2ⁿ of n bits. Each bit is expected by those above it.
func (a *arithmetic) tree(tree []chance, number uint32) uint32 {
	size := bits.Len(uint(len(tree))) - 1
	node := uint32(1)
	for i := size - 1; i >= 0; i-- {
		node = node<<1 | a.bit(&tree[node], number>>i&1)
	}
	return node - 1<<size
}

// flag codes a bit as what it says.
func (a *arithmetic) flag(p *chance, v bool) bool {
	bit := uint32(0)
	if v {
		bit = 1
	}
	return a.bit(p, bit) == 1
}
