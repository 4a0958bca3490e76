package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/service"
)

type manCommand struct {
	Dir string `arg:"" optional:"" type:"path" help:"Directory to write all pages into; created if it is missing. Default: print plumbline(1)."`
}

// Help returns the examples.
func (*manCommand) Help() string {
	return "The pages have what --help prints. plumbline-bundle(1) has all commands that begin with plumbline bundle.\n\n" + examples(
		"plumbline man | man -l -",
		"plumbline man ~/.local/share/man/man1",
	)
}

// Run writes the pages, or prints the first one.
func (c *manCommand) Run(con *console) error {
	app := newParser().Model.Node
	if c.Dir == "" {
		_, err := fmt.Fprint(con.out, overviewPage(app))
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("manual pages: %w", err)
	}
	for name, page := range manPages(app) {
		if err := os.WriteFile(filepath.Join(c.Dir, name+".1"), []byte(page), 0o644); err != nil {
			return fmt.Errorf("manual pages: %w", err)
		}
	}
	return nil
}

// manPages returns the pages by name: one for the program, and one for each command of it. The existing
// library for kong puts everything into one page, without arguments and examples.
func manPages(app *kong.Node) map[string]string {
	pages := map[string]string{app.Name: overviewPage(app)}
	for _, command := range app.Children {
		if !command.Hidden {
			pages[app.Name+"-"+command.Name] = commandPage(command)
		}
	}
	return pages
}

// roff is a page in the macros of man(7).
type roff struct{ strings.Builder }

// newPage begins a page.
func newPage(name, summary string) *roff {
	p := new(roff)
	p.macro("TH", strings.ToUpper(name), "1", "", "plumbline "+service.BuildVersion(), "Plumbline")
	p.macro("SH", "NAME")
	p.line(name + " - " + strings.TrimSuffix(summary, "."))
	return p
}

// macro writes a line that begins with a macro.
func (p *roff) macro(name string, arguments ...string) {
	p.WriteString("." + name)
	for _, argument := range arguments {
		p.WriteString(` "` + escapeRoff(argument) + `"`)
	}
	p.WriteByte('\n')
}

// line writes a line of text.
func (p *roff) line(text string) { p.WriteString(escapeRoff(text) + "\n") }

// item writes an item of a list.
func (p *roff) item(term, text string) {
	p.macro("TP")
	p.macro("B", term)
	p.line(text)
}

// text writes paragraphs, between which are empty lines. Indented lines stay as they are.
func (p *roff) text(text string) {
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			p.macro("PP")
		}
		if strings.HasPrefix(paragraph, " ") {
			p.macro("RS", "4")
			p.macro("nf")
		}
		for line := range strings.SplitSeq(paragraph, "\n") {
			p.line(strings.TrimPrefix(line, "  "))
		}
		if strings.HasPrefix(paragraph, " ") {
			p.macro("fi")
			p.macro("RE")
		}
	}
}

// roffEscapes writes characters that roff would otherwise read as its own, or as typographic ones.
var roffEscapes = strings.NewReplacer(`\`, `\(rs`, "-", `\-`, "'", `\(aq`, `"`, `\(dq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

func escapeRoff(text string) string {
	text = roffEscapes.Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text // not a macro
	}
	var b strings.Builder
	for _, r := range text {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}

// overviewPage returns the page of the program.
func overviewPage(app *kong.Node) string {
	p := newPage(app.Name, "evidence pipeline for fleets of AI agents")
	p.macro("SH", "SYNOPSIS")
	p.macro("B", app.Name+" <command> [flags]")
	p.macro("SH", "DESCRIPTION")
	p.text(app.Help)
	p.flags(app.Flags)
	p.macro("SH", "COMMANDS")
	for _, leaf := range app.Leaves(true) {
		p.item(leaf.FullPath(), leaf.Help)
	}
	var others []string
	for _, command := range app.Children {
		others = append(others, fmt.Sprintf("%s-%s(1)", app.Name, command.Name))
	}
	p.ending(strings.Join(others, ", "))
	return p.String()
}

// commandPage returns the page of a command and all below it.
func commandPage(command *kong.Node) string {
	leaves := command.Leaves(true)
	if command.Leaf() {
		leaves = []*kong.Node{command}
	}
	p := newPage(strings.ReplaceAll(command.FullPath(), " ", "-"), command.Help)
	p.macro("SH", "SYNOPSIS")
	for i, leaf := range leaves {
		if i > 0 {
			p.macro("br")
		}
		p.macro("B", command.Parent.Name+" "+leaf.Summary())
	}
	p.macro("SH", "DESCRIPTION")
	for _, leaf := range leaves {
		if leaf != command {
			p.macro("SS", leaf.FullPath())
		}
		p.text(leaf.Help)
		detail, lines, _ := strings.Cut(leaf.Detail, config.ExamplesHeading)
		if detail != "" {
			p.macro("PP")
			p.text(detail)
		}
		for _, argument := range leaf.Positional {
			p.item(argument.Summary(), argument.Help)
		}
		p.flags(slices.Concat(leaf.AllFlags(true)[1:]...)) // without those of the program
		if lines != "" {
			p.macro("PP")
			p.line("Examples:")
			p.text(lines)
		}
	}
	p.ending(command.Parent.Name + "(1)")
	return p.String()
}

// flags writes a list of flags, with the title of each group.
func (p *roff) flags(flags []*kong.Flag) {
	title := ""
	for _, flag := range flags {
		if flag.Hidden {
			continue
		}
		if flag.Group != nil && flag.Group.Title != title {
			title = flag.Group.Title
			p.macro("PP")
			p.text(title + ":")
		}
		term := flag.Summary()
		if flag.Short != 0 {
			term = "-" + string(flag.Short) + ", " + term
		}
		if flag.Tag.Negatable != "" {
			term += ", --no-" + flag.Name
		}
		p.item(term, flag.Help)
	}
}

// ending writes what every page ends with.
func (p *roff) ending(others string) {
	p.macro("SH", "ENVIRONMENT")
	p.item("PLUMBLINE_<FLAG>", "Sets a flag that the command line does not give: PLUMBLINE_LOG_LEVEL is --log-level.")
	p.item("NO_COLOR", "No colors on a terminal.")
	p.item("LC_ALL, LC_CTYPE, LANG", "If the first that is set names UTF-8, drift explain draws with block characters, else with ASCII.")
	p.macro("SH", "EXIT STATUS")
	p.line("0 good, 1 found bad or failed, 2 wrong command line or nothing to read.")
	p.macro("SH", "SEE ALSO")
	p.line(others)
}
