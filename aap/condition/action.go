package condition

import "strings"

// actionTypes are the types of an action in AAP section 5.4.
var actionTypes = [...]string{"recommend", "execute", "escalate", "deny"}

// actionType is the name of the field of an action's type.
const actionType = "action_type"

// actionName is the field of an action's name.
var actionName = NewField("action_name")

// canMeanNameOnly reports whether t tests action_type for something that no type
// of section 5.4 is. Sections 4.6 and 4.9 write action_type == "delete" and
// action_type == "purchase": that can only mean the name of an action.
func (t *test) canMeanNameOnly() bool {
	if t.field.Name != actionType || t.value.Kind != String {
		return false
	}
	for _, kind := range actionTypes {
		meant := false
		switch t.op {
		case equal, notEqual:
			meant = kind == t.value.Text
		case contains:
			meant = strings.Contains(kind, t.value.Text)
		case matches:
			meant = t.pattern.regexp.MatchString(kind)
		default:
			return false
		}
		if meant {
			return false
		}
	}
	return true
}
