package message

import (
	"encoding/json"
	"fmt"
	"regexp"
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

// requests lists the verbs that a request begins with, by class. Verbs after the bar are also
// nouns ("order status", "email from Bob"): they count only before a word that cannot follow a
// noun.
var requests = map[Intents]string{
	Write: "write create add edit modify delete remove append insert rename save replace refactor | update change move set fix commit merge cancel",
	Send:  "send reply forward notify publish upload | email mail message text post tweet share",
	Exec:  "execute install deploy restart reboot | run start launch kill build compile",
	Trade: "buy sell pay purchase invest withdraw donate | order transfer trade refund book",
}

// verb is a verb that asks for a class.
type verb struct {
	class     Intents
	ambiguous bool
}

var verbs = func() map[string]verb {
	table := map[string]verb{}
	for class, words := range requests {
		clear, nouns, _ := strings.Cut(words, "|")
		for word := range strings.FieldsSeq(clear) {
			table[word] = verb{class: class}
		}
		for word := range strings.FieldsSeq(nouns) {
			table[word] = verb{class: class, ambiguous: true}
		}
	}
	return table
}()

var (
	// sentence is the range of one doubt.
	sentence = regexp.MustCompile(`[^.!?\n]+[.!?]*`)
	// clause matches where another request of the sentence may begin.
	clause = regexp.MustCompile(`[,;]+|\b(?:and|then|also|but)\b`)
	// polite matches the words that may precede the verb of a request.
	polite = regexp.MustCompile(`^(?:(?:ok|okay|hi|hello|hey|please|kindly|now|first|next|finally|just|i(?: would|'d)? (?:want|like|need) you to|(?:can|could|would|will) you|let's|let us|go ahead)\s+)*`)
	// doubt matches words that make a sentence no request: negation, a question, a condition,
	// or a report of another person's words.
	doubt = regexp.MustCompile(`\b(?:not|never|no|nobody|nothing|without|avoid|refrain|stop|how|what|why|whether|who|when|which|where|if|unless|should|would|could|may|might|said|says|say|saying|told|tell|tells|asks|asked|wants|wanted|means|meant|suppose|imagine|pretend|example)\b|n['’]t\b|:`)
	// others matches the announcement of a foreign text.
	others = regexp.MustCompile(`:(?:\s|\z)|\b(?:below|following|forwarded|attached|pasted)\b|^\s*[-_=*]{3,}`)
	// object matches words that can follow a verb but not a noun.
	object = regexp.MustCompile(`^\s+(?:the|a|an|my|our|your|his|her|their|this|that|these|those|it|him|them|me|us|all|every|everyone)\b`)
	word   = regexp.MustCompile(`^[a-z]+(?:\s|\z)`)
	// quoted matches quotations, which are not requests.
	quoted = regexp.MustCompile("(?s)```.*?(?:```|\\z)|`[^`\n]*`|\"[^\"]*(?:\"|\\z)|“[^”]*(?:”|\\z)|(?:‘|(?:^|[\\s(])')[^\n]*?['’](?:[^a-z]|\\z)|(?m:^\\s*>[^\n]*$)|<[a-z!].*>")
)

// Infer returns the classes that a message explicitly asks for: always reading, and the classes
// of the verbs that its clauses begin with. It is for gateways whose users declare nothing, and
// it infers too little rather than too much. These parts permit reading only: words it does not
// recognise, any sentence with a negation, a question, a condition or another person's words,
// and everything after a text is announced.
func Infer(text string) Intents {
	set := Read
	text = quoted.ReplaceAllString(strings.ToLower(text), " ")
	for _, s := range sentence.FindAllString(text, -1) {
		set |= asked(strings.TrimSpace(s))
		if others.MatchString(s) {
			break
		}
	}
	return set
}

// asked returns the classes that a sentence asks for.
func asked(sentence string) (set Intents) {
	manners := polite.FindString(sentence)
	request := strings.TrimRight(sentence[len(manners):], ".!?")
	question := strings.HasSuffix(sentence, "?") && !strings.Contains(manners, "you ")
	if question || doubt.MatchString(request) {
		return 0
	}
	for _, c := range clause.Split(request, -1) {
		c = strings.TrimSpace(c)
		c = c[len(polite.FindString(c)):]
		first := strings.TrimSpace(word.FindString(c))
		if v := verbs[first]; !v.ambiguous || object.MatchString(c[len(first):]) {
			set |= v.class
		}
	}
	return set
}
