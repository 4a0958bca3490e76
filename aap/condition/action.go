package condition

import "strings"

// actionTypes are the action types of AAP section 5.4.
var actionTypes = [...]string{"recommend", "execute", "escalate", "deny"}

// actionType is the name of the field for an action's type.
const actionType = "action_type"

// actionName is the field for an action's name.
var actionName = NewField("action_name")

// canMeanNameOnly reports whether t compares action_type with a text that is no type of section
// 5.4. Sections 4.6 and 4.9 write action_type == "delete" and action_type == "purchase": these
// can only mean the name of an action.
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
