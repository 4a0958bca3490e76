package similarity

import "math"

// Cosine returns the cosine of two vectors, 0 when one of them has length zero. It is not
// rounded; see Round4.
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

// Add adds v to sum key by key and returns sum, with new keys at its end.
func Add(sum, v Vector) Vector {
	before := sum // v has each key once, so its own new keys need not be searched
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

// Centroid divides sum in place by the number of vectors that were added to it. A key that a
// vector lacks counts as 0 in that vector.
func Centroid(sum Vector, vectors int) Vector {
	for i := range sum {
		sum[i].Weight /= float64(vectors)
	}
	return sum
}

// Compact returns a copy of v whose keys share one string, so a vector that is kept for long
// holds no memory of the traces.
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

// Round4 rounds to four decimals, ties up, like every published score.
func Round4(x float64) float64 { return math.Floor(x*10000+0.5) / 10000 }

// places finds keys in a vector: by scanning a short one, and by a map in a long one, so a
// publisher cannot cause quadratic cost with a long list.
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
