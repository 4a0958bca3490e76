package message

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Intents is a set of action classes (RFC section 2, layer 2).
type Intents uint8

// The five action classes.
const (
	Read  Intents = 1 << iota // query and observe only
	Write                     // modify files or state
	Send                      // communicate with the outside
	Exec                      // run system commands
	Trade                     // financial actions
)

// AllIntents is the set of all five classes.
const AllIntents = Read | Write | Send | Exec | Trade

var intentNames = []string{"read", "write", "send", "exec", "trade"}

// ParseIntents reads names of action classes; the error lists every invalid name. An empty list
// is the empty set.
func ParseIntents(names []string) (Intents, error) {
	var set Intents
	var unknown []string
	for _, name := range names {
		if bit := slices.Index(intentNames, name); bit >= 0 {
			set |= 1 << bit
		} else {
			unknown = append(unknown, fmt.Sprintf("%q", clip(name)))
		}
	}
	if unknown != nil {
		return 0, fmt.Errorf("no action class: %s; the classes are %s", strings.Join(unknown, ", "), strings.Join(intentNames, ", "))
	}
	return set, nil
}

// Names returns the classes of the set, in the RFC's order; never nil.
func (i Intents) Names() []string {
	names := []string{}
	for bit, name := range intentNames {
		if i&(1<<bit) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names joined by commas.
func (i Intents) String() string { return strings.Join(i.Names(), ",") }

// intentLists holds the String of every set.
var intentLists = func() (lists [AllIntents + 1]string) {
	for set := range lists {
		lists[set] = Intents(set).String()
	}
	return lists
}()

// Has reports whether the set has every class of other.
func (i Intents) Has(other Intents) bool { return i&other == other }

// MarshalJSON writes the list of names.
func (i Intents) MarshalJSON() ([]byte, error) { return json.Marshal(i.Names()) }

// UnmarshalJSON reads a list of names; the error lists the invalid ones.
func (i *Intents) UnmarshalJSON(text []byte) error {
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return err
	}
	set, err := ParseIntents(names)
	*i = set
	return err
}
