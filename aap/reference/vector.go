package reference

import "github.com/plumbline/plumbline/aap/similarity"

// Vector holds features in order of first appearance. A weight is a value of the request: only
// that of confidence can be something other than a number.
type Vector struct {
	features []feature
	places   map[string]int // index of a feature, by its key
}

type feature struct {
	key    string
	weight value
}

// at returns the weight of a key; a new key has weight 0.
func (v *Vector) at(key string) *value {
	i, known := v.places[key]
	if !known {
		if v.places == nil {
			v.places = map[string]int{}
		}
		i = len(v.features)
		v.places[key] = i
		v.features = append(v.features, feature{key, value{v: 0.0, path: key}})
	}
	return &v.features[i].weight
}

func (v *Vector) set(key string) { v.at(key).v = 1.0 }

func (v *Vector) setEach(kind string, names []value) {
	for _, name := range names {
		v.set(kind + name.string())
	}
}

// MarshalJSON returns {"key": weight, …}.
func (v *Vector) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, f := range v.features {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSON(b, f.key), ':')
		b = appendJSON(b, f.weight.v)
	}
	return append(b, '}'), nil
}

// numbers converts the weights.
func (v *Vector) numbers() similarity.Vector {
	converted := make(similarity.Vector, len(v.features))
	for i, f := range v.features {
		converted[i] = similarity.Feature{Key: f.key, Weight: f.weight.number()}
	}
	return converted
}

func cosine(a, b *Vector) float64 { return similarity.Cosine(a.numbers(), b.numbers()) }

// baselineOf returns the centroid of traces.
func baselineOf(traces []value) *Vector {
	var centroid Vector
	for _, trace := range traces {
		for _, f := range traceFeatures(trace).features {
			sum := centroid.at(f.key)
			*sum = sum.plus(f.weight)
		}
	}
	for i, f := range centroid.features {
		centroid.features[i].weight.v = f.weight.number() / float64(len(traces))
	}
	return &centroid
}
