package drift

import "strings"

// words are what the keys of AAP section 8.3 begin with, or are.
var words = [16]string{
	"", "action:", "action_name:", "value:", "category:", "confidence",
	"action:recommend", "action:execute", "action:escalate", "action:deny",
	"category:bounded", "category:escalation_trigger", "category:forbidden",
	"escalation:evaluated", "escalation:required", "escalation:not_required",
}

// letters are those that keys have most. Behind them come the mark of another byte, and that of the end.
const (
	letters     = "abcdefghijklmnopqrstuvwxyz_-.:"
	otherLetter = len(letters)
	endOfKey    = otherLetter + 1
)

// keys codes the keys by their letters. Names resemble each other, so where the last two letters came before, the letter
// behind them is expected again.
func (a *arithmetic) keys(l *learning) {
	var word [len(words)]chance
	var letter [endOfKey + 1]chance
	var expects [16]chance // that a text goes on as an earlier one, by how long it did
	var isDeclared chance
	var written []uint8        // the marks so far
	var places [1 << 10]uint16 // behind each pair of marks, where it came last
	for i := range l.keys {
		key := l.keys[i]
		longest := 0
		for w := range words {
			if len(words[w]) > len(words[longest]) && strings.HasPrefix(key, words[w]) {
				longest = w
			}
		}
		longest = int(a.tree(word[:], uint32(longest)))
		text, pair := []byte(words[longest]), endOfKey<<5|endOfKey
		like, length := 0, 0 // the place in written that goes on as this text does; 0: none
		for at := len(text); ; at++ {
			next, mark := byte(0), endOfKey
			if at < len(key) {
				if next, mark = key[at], strings.IndexByte(letters, key[at]); mark < 0 {
					mark = otherLetter
				}
			}
			if like == 0 {
				like, length = int(places[pair]), 0
			}
			if like > 0 && a.flag(&expects[min(length, len(expects)-1)], mark == int(written[like])) {
				mark = int(written[like])
				like, length = like+1, length+1
			} else {
				mark = int(a.tree(letter[:], uint32(mark)))
				like = 0
			}
			places[pair] = uint16(len(written))
			written = append(written, uint8(mark))
			pair = (pair<<5 | mark) & (1<<10 - 1)
			if mark == endOfKey || a.c.err != nil {
				break
			}
			if mark == otherLetter {
				next = byte(a.raw(uint32(next), 8))
			} else {
				next = letters[mark]
			}
			text = append(text, next)
		}
		if a.reading {
			l.keys[i] = string(text)
		}
		if a.flag(&isDeclared, l.declared>>i&1 == 1) {
			l.declared |= 1 << i
		}
	}
}
