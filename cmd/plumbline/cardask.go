package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// interactive reports whether somebody can answer questions: standard input is a terminal.
func (con *console) interactive() bool {
	in, ok := con.in.(*interruptible)
	if !ok {
		return false
	}
	file, ok := in.in.(*os.File)
	return ok && isTerminal(file)
}

// questions asks on a terminal.
type questions struct {
	in  *bufio.Reader
	out *os.File // standard error
}

func newQuestions(con *console) *questions {
	return &questions{bufio.NewReader(con.in), con.errs}
}

// answer asks until the answer is not refused, and returns it without surrounding white space.
// accept may be nil.
func (q *questions) answer(question string, accept func(string) error) (string, error) {
	for {
		fmt.Fprintf(q.out, "%s: ", question)
		line, err := q.in.ReadString('\n')
		line = strings.TrimSpace(line)
		switch {
		case errors.Is(err, io.EOF) && line == "":
			fmt.Fprintln(q.out)
			return "", usagef("the answers ended; nothing was written. Every answer can also be given by a flag: plumbline card new --help")
		case err != nil && !errors.Is(err, io.EOF):
			return "", err
		}
		if accept == nil {
			return line, nil
		}
		refused := accept(line)
		if refused == nil {
			return line, nil
		}
		fmt.Fprintf(q.out, "  %s\n", errorText(refused))
	}
}

// list asks for names that are separated by commas.
func (q *questions) list(question string, required bool) ([]string, error) {
	var names []string
	_, err := q.answer(question, func(line string) error {
		names = nil
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if required && len(names) == 0 {
			return errRequired
		}
		return nil
	})
	return names, err
}

var errRequired = errors.New("an answer is required")

func notEmpty(line string) error {
	if line == "" {
		return errRequired
	}
	return nil
}

// ask asks for what the flags do not give.
func (c *cardNewCommand) ask(q *questions) (err error) {
	if c.Agent == "" {
		if c.Agent, err = q.answer("agent_id (a DID, URL or UUID, such as did:web:buyer.example)", notEmpty); err != nil {
			return err
		}
	}
	if c.Principal == "" && c.PrincipalType != "unspecified" {
		if c.Principal, err = q.answer("Whom does the agent serve? (a DID, an email address or the id of an organisation)", notEmpty); err != nil {
			return err
		}
	}
	if err := c.askValues(q); err != nil {
		return err
	}
	if len(c.Bounded) == 0 {
		if c.Bounded, err = q.list("Which actions may it take by itself? (names, separated by commas)", true); err != nil {
			return err
		}
	}
	if len(c.Forbidden) == 0 {
		if c.Forbidden, err = q.list("Which actions must it never take? (names, separated by commas; none: Enter)", false); err != nil {
			return err
		}
	}
	if len(c.Escalate) == 0 {
		return c.askTriggers(q)
	}
	return nil
}

// askValues asks for values, and for the meaning of each that AAP does not define.
func (c *cardNewCommand) askValues(q *questions) (err error) {
	if len(c.Value) == 0 {
		fmt.Fprintf(q.out, "Values that AAP defines: %s.\n", strings.Join(schema.StandardValues, ", "))
		if c.Value, err = q.list("Which values does it apply? (separated by commas)", true); err != nil {
			return err
		}
	}
	for _, value := range c.Value {
		if _, defined := c.Define[value]; defined || slices.Contains(schema.StandardValues, value) {
			continue
		}
		meaning, err := q.answer(fmt.Sprintf("What does %s mean in operation?", printable(value)), notEmpty)
		if err != nil {
			return err
		}
		if c.Define == nil {
			c.Define = map[string]string{}
		}
		c.Define[value] = meaning
	}
	return nil
}

// askTriggers asks for conditions until one is empty.
func (c *cardNewCommand) askTriggers(q *questions) error {
	question := "On which condition must it ask first? (such as amount > 100; none: Enter)"
	for {
		expression, err := q.answer(question, func(line string) error {
			if line == "" {
				return nil
			}
			_, err := condition.Parse(line)
			return err
		})
		if err != nil || expression == "" {
			return err
		}
		reason, err := q.answer("For what reason? (for the person who is asked)", notEmpty)
		if err != nil {
			return err
		}
		c.Escalate = append(c.Escalate, expression+" # "+reason)
		question = "On which other condition? (none: Enter)"
	}
}
