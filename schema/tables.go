package schema

// tableReader reads objects by tables of their members. It trades the speed of Decoder for
// brevity, for records that are read once.
type tableReader struct {
	reader
}

// members maps the known members of an object to the functions that read them.
type members map[string]func()

// object reads an object. Known members are read by their functions; others are skipped within
// the limits. It reports missing required members and returns the names found.
func (d *tableReader) object(known members, required ...string) map[string]bool {
	found := map[string]bool{}
	if !d.enter('{', "an object") {
		return found
	}
	at := string(d.dec.StackPointer())
	for d.more() {
		name := d.name()
		found[name] = true
		if read, ok := known[name]; ok {
			read()
			continue
		}
		d.opaque()
	}
	for _, name := range required {
		if d.err == nil && !found[name] {
			d.faultAt(at+"/"+name, "is required and missing")
		}
	}
	return found
}

// optional returns a function that treats null as absent.
func (d *tableReader) optional(read func()) func() {
	return func() {
		if !d.null() {
			read()
		}
	}
}

// into returns a function that stores the result of read.
func into[T any](dst *T, read func() T) func() { return func() { *dst = read() } }

// choice returns a function that reads one of the allowed texts.
func choice[T ~string](d *tableReader, dst *T, allowed ...T) func() {
	return func() { *dst = oneOf(&d.reader, d.text(), allowed...) }
}

// names reads an array of non-empty names.
func (d *tableReader) names() []string {
	var out []string
	if !d.enter('[', "an array of strings") {
		return nil
	}
	for d.more() {
		out = append(out, d.identifier())
	}
	return out
}
