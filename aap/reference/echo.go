package reference

// Echo is a value of the request that the answer repeats.
type Echo struct{ v any }

// MarshalJSON writes the value as JavaScript does.
func (e Echo) MarshalJSON() ([]byte, error) { return appendJSON(nil, e.v), nil }

// IsZero tells whether there is no value: JavaScript leaves such members out.
func (e Echo) IsZero() bool {
	_, undefined := e.v.(Undefined)
	return undefined
}

// echoOrEmpty repeats n, or the empty text where n is null or undefined.
func (n value) echoOrEmpty() Echo { return Echo{n.orEmpty()} }
