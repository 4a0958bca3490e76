package reference

// Echo is a value of the request that the result repeats.
type Echo struct{ v any }

// MarshalJSON encodes the value as JavaScript does.
func (e Echo) MarshalJSON() ([]byte, error) { return appendJSON(nil, e.v), nil }

// IsZero reports whether there is no value: JavaScript omits such members.
func (e Echo) IsZero() bool {
	_, undefined := e.v.(Undefined)
	return undefined
}

// echoOrEmpty returns n, or the empty text where n is null or undefined.
func (n value) echoOrEmpty() Echo { return Echo{n.orEmpty()} }
