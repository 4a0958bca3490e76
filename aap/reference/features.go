package reference

import (
	"regexp"
	"strings"

	"github.com/plumbline/plumbline/aap/similarity"
)

// conditionWeight is the weight of one occurrence of a word in a trigger's condition.
const conditionWeight = 0.5

// minWordLength is the minimum length of a word that counts.
const minWordLength = 3

// stopWords are words that do not count.
var stopWords = setOf(strings.Fields(`the a an and or but in on at to of for with by from is are was were be been being
	have has had do does did will would could should may might must shall can this that these those it its as if then else`))

var notWord = regexp.MustCompile(`[^a-z0-9` + jsSpace + `]`)

// TraceFeatures returns the structural features of a trace, in order of first appearance.
func TraceFeatures(trace any) (v *Vector, err error) {
	defer catch(&err)
	return traceFeatures(value{trace, "trace"}), nil
}

// CardFeatures returns the structural features of a card, in order of first appearance.
func CardFeatures(card any) (v *Vector, err error) {
	defer catch(&err)
	return cardFeatures(value{card, "card"}), nil
}

// Similarity returns the cosine of a trace's and a card's features, not rounded.
func Similarity(trace, card any) (score float64, err error) {
	defer catch(&err)
	return cosine(traceFeatures(value{trace, "trace"}), cardFeatures(value{card, "card"})), nil
}

func traceFeatures(trace value) *Vector {
	f := &Vector{}
	action := trace.get("action")
	f.set("action:" + action.get("type").string())
	f.set("category:" + action.get("category").string())
	if name := action.get("name"); name.truthy() {
		f.set("action_name:" + name.string())
	}
	decision := trace.get("decision")
	f.setEach("value:", decision.get("values_applied").each())
	if escalation := trace.get("escalation"); escalation.truthy() {
		if escalation.get("evaluated").truthy() {
			f.set("escalation:evaluated")
		}
		if escalation.get("required").truthy() {
			f.set("escalation:required")
		} else {
			f.set("escalation:not_required")
		}
	}
	if confidence := decision.get("confidence"); !confidence.missing() {
		*f.at("confidence") = confidence
	}
	return f
}

func cardFeatures(card value) *Vector {
	f := &Vector{}
	values := card.get("values")
	for _, id := range valueIDs(values.get("declared")) {
		f.set("value:" + id)
	}
	f.setEach("conflict:", values.get("conflicts_with").eachOrNone())
	autonomy := autonomyOf(card)
	f.setEach("action_name:", autonomy.get("bounded_actions").each())
	f.setEach("forbidden:", autonomy.get("forbidden_actions").eachOrNone())
	for _, trigger := range autonomy.get("escalation_triggers").eachOrNone() {
		f.set("escalation:" + trigger.get("action").string())
		for _, word := range words(trigger.get("condition").text()) {
			weight := f.at("condition:" + word)
			*weight = weight.plus(value{v: conditionWeight})
		}
	}
	principal := card.get("principal")
	f.set("principal_type:" + principal.get("type").string())
	f.set("relationship:" + principal.get("relationship").string())
	audit := card.get("audit").or(card.get("audit_commitment"))
	if audit.try("queryable").truthy() {
		f.set("audit:queryable")
	}
	if tamper := audit.try("tamper_evidence"); tamper.truthy() {
		f.set("audit:tamper_" + tamper.string())
	}
	return f
}

// autonomyOf returns the autonomy envelope under either of its two names.
func autonomyOf(card value) value {
	none := value{v: &Object{members: map[string]any{"bounded_actions": []any{}}}, path: card.path + ".autonomy"}
	return card.get("autonomy").or(card.get("autonomy_envelope")).or(none)
}

// valueIDs returns the ids of a list of values, which are strings or objects with an id. It
// omits all others.
func valueIDs(list value) []string {
	ids := []string{}
	elements, _ := list.v.([]any)
	for _, element := range elements {
		if object, ok := element.(*Object); ok {
			element = object.members["id"]
		}
		if id, ok := element.(string); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// words returns the words of a condition that count, in lower case as by JavaScript's toLowerCase:
// the lower case of one letter is two characters.
func words(condition string) []string {
	var kept []string
	lower := strings.ToLower(strings.ReplaceAll(condition, "\u0130", "i\u0307"))
	for _, word := range strings.FieldsFunc(notWord.ReplaceAllString(lower, " "), isSpace) {
		if len(word) >= minWordLength && !stopWords[word] {
			kept = append(kept, word)
		}
	}
	return kept
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

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
