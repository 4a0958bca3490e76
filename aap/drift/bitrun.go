package drift

import "math/bits"

// bitRun codes numbers of few bits one behind the other, the lowest bit first. A run of them begins and ends with a
// whole byte, and ends with align.
type bitRun struct {
	*codec
	pending uint64 // bits of the last byte
	have    int    // how many
}

// bits codes a number of so many bits, at most 16.
func (r *bitRun) bits(number uint16, width int) uint16 {
	if !r.reading {
		r.pending |= uint64(number) << r.have
		for r.have += width; r.have >= 8; r.have -= 8 {
			r.data = append(r.data, byte(r.pending))
			r.pending >>= 8
		}
		return number
	}
	for ; r.have < width; r.have += 8 {
		part := r.next(1)
		if part == nil {
			return 0
		}
		r.pending |= uint64(part[0]) << r.have
	}
	number = uint16(r.pending & (1<<width - 1))
	r.pending >>= width
	r.have -= width
	return number
}

// align ends a run of bits with a whole byte.
func (r *bitRun) align() {
	if !r.reading && r.have > 0 {
		r.data = append(r.data, byte(r.pending))
	}
	r.pending, r.have = 0, 0
}

// rice codes numbers of which most are about as large as their mean (Rice's code): the lowest bits as they
// are, and what is above them as so many ones and a zero.
func (r *bitRun) rice(numbers []uint16) {
	low := uint8(0)
	if !r.reading {
		low = lowBits(numbers)
	}
	if whole(r.codec, &low); low > 16 {
		r.fail("%d low bits", low)
		return
	}
	for i, n := range numbers {
		above := r.ones(int(n >> low))
		number := above<<low | int(r.bits(n&(1<<low-1), int(low)))
		if numbers[i] = uint16(number); int(numbers[i]) != number {
			r.fail("the number %d is too large", number)
			return
		}
	}
	r.align()
}

// ones codes a small number as so many ones, and a zero.
func (r *bitRun) ones(n int) int {
	if r.reading {
		n = 0
		for r.bits(0, 1) == 1 {
			n++
		}
		return n
	}
	for left := n; ; left -= 16 {
		if left < 16 {
			r.bits(1<<left-1, left+1)
			return n
		}
		r.bits(1<<16-1, 16)
	}
}

// lowBits returns how many low bits of the numbers to code as they are, so that rice takes the least space.
func lowBits(numbers []uint16) uint8 {
	sum := 0
	for _, n := range numbers {
		sum += int(n)
	}
	low := bits.Len(uint(sum / len(numbers)))
	if low == 0 {
		return 0
	}
	less, more := 0, 0 // bits above low-1 and low low bits
	for _, n := range numbers {
		less += int(n >> (low - 1))
		more += int(n >> low)
	}
	if less < more+len(numbers) {
		low--
	}
	return uint8(low)
}

// unsigned returns a number of either sign as one without: small ones are small. signed reverses it.
func unsigned(n int16) uint16 { return uint16(n<<1) ^ uint16(n>>15) }

func signed(n uint16) int16 { return int16(n>>1) ^ -int16(n&1) }
