package main

import (
	"fmt"
	"io"

	"github.com/plumbline/plumbline/schema"
)

// warned collects the warnings of many lines: equal warnings are shown once.
type warned struct {
	first map[schema.Warning]int // index in kinds
	kinds []warning
	more  int // lines whose warnings are not shown
}

// warning is a kind of warning, with the first line that has it.
type warning struct {
	schema.Warning
	file  string
	line  int
	lines int
}

// maxWarnings bounds the number of kinds that are shown.
const maxWarnings = 50

func (w *warned) add(file string, line int, warnings []schema.Warning) {
	for _, one := range warnings {
		at, known := w.first[one]
		switch {
		case known:
			w.kinds[at].lines++
		case len(w.kinds) < maxWarnings:
			if w.first == nil {
				w.first = map[schema.Warning]int{}
			}
			w.first[one] = len(w.kinds)
			w.kinds = append(w.kinds, warning{one, file, line, 1})
		default:
			w.more++
		}
	}
}

// print shows each kind once.
func (w *warned) print(out io.Writer) error {
	for _, one := range w.kinds {
		pointer := one.Pointer
		if pointer != "" {
			pointer += ": "
		}
		text := fmt.Sprintf("%s:%d: warning: %s", one.file, one.line, printable(pointer+one.Message))
		if one.lines > 1 {
			text += fmt.Sprintf(" (and %d more lines)", one.lines-1)
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	if w.more > 0 {
		_, err := fmt.Fprintf(out, "%d more warnings: --json shows them all\n", w.more)
		return err
	}
	return nil
}
