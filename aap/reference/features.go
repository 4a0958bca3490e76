package reference

import (
	"regexp"
	"strings"
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
		f.setEscalation(escalation)
	}
	if confidence := decision.get("confidence"); !confidence.missing() {
		*f.at("confidence") = confidence
	}
	return f
}

func (v *Vector) setEscalation(escalation value) {
	if escalation.get("evaluated").truthy() {
		v.set("escalation:evaluated")
	}
	if escalation.get("required").truthy() {
		v.set("escalation:required")
	} else {
		v.set("escalation:not_required")
	}
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

// words returns the words of a condition that count.
func words(condition string) []string {
	var kept []string
	for _, word := range strings.FieldsFunc(notWord.ReplaceAllString(lower(condition), " "), isSpace) {
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
