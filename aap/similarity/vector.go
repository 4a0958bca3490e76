package similarity

import "math"

// Cosine returns the cosine of two vectors, 0 when either has no length. It is
// not rounded; see Round4.
func Cosine(a, b Vector) float64 {
	lengths := a.Norm() * b.Norm()
	if lengths == 0 {
		return 0
	}
	return dot(a, b) / lengths
}

// Norm returns the Euclidean length of v.
func (v Vector) Norm() float64 {
	var sum float64
	for _, f := range v {
		sum += f.Weight * f.Weight
	}
	return math.Sqrt(sum)
}

func dot(a, b Vector) float64 {
	at := newPlaces(b)
	var sum float64
	for _, f := range a {
		if i, ok := at.find(b, f.Key); ok {
			sum += f.Weight * b[i].Weight
		}
	}
	return sum
}

// Add adds v to sum key by key and returns sum, new keys at its end.
func Add(sum, v Vector) Vector {
	before := sum // v holds each key once: what it adds is not looked for
	at := newPlaces(before)
	for _, f := range v {
		if i, ok := at.find(before, f.Key); ok {
			sum[i].Weight += f.Weight
			continue
		}
		sum = append(sum, f)
	}
	return sum
}

// Centroid divides sum by the number of vectors that were added to it, in
// place. A key that a vector lacks counts as 0 there.
func Centroid(sum Vector, vectors int) Vector {
	for i := range sum {
		sum[i].Weight /= float64(vectors)
	}
	return sum
}

// Compact returns a copy of v whose keys share one string: what is kept for long
// holds nothing of the traces that it came from.
func Compact(v Vector) Vector {
	size := 0
	for i := range v {
		size += len(v[i].Key)
	}
	var keys keyring
	keys.b.Grow(size)
	out := make(Vector, len(v))
	for i, f := range v {
		out[i] = Feature{keys.join(f.Key, ""), f.Weight}
	}
	return out
}

// Round4 rounds to four decimals, ties up, as every published score is.
func Round4(x float64) float64 { return math.Floor(x*10000+0.5) / 10000 }

// places finds keys in a vector: by looking through a short one, by a map in a
// long one, so that no publisher can make us pay the square of his list.
type places map[string]int

func newPlaces(v Vector) places {
	if len(v) <= scanLimit {
		return nil
	}
	p := make(places, len(v))
	for i, f := range v {
		p[f.Key] = i
	}
	return p
}

func (p places) find(v Vector, key string) (int, bool) {
	if p != nil {
		i, ok := p[key]
		return i, ok
	}
	for i := range v {
		if v[i].Key == key {
			return i, true
		}
	}
	return 0, false
}
