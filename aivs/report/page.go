package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"

	"github.com/plumbline/plumbline/aivs"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

// DefaultFull is how many decisions a page shows in full.
const DefaultFull = 200

// Page is what a page is made of.
type Page struct {
	File     string       // the name of the bundle's file
	Report   *aivs.Report // the result of its verification
	Contents *Contents    // filled by that verification
	Full     int          // how many decisions are shown in full; 0: all
}

// view is the page as the template reads it.
type view struct {
	Style  template.CSS
	Policy string // the content security policy: this style, and nothing else

	Tone        string // of the sentence about the file: good, caution or bad
	Conclusion  string
	VerdictTone string // of the sentence about the agent: plain, caution or bad
	Verdict     string
	Unknown     string // that it is not known who signed
	Faults      []aivs.Fault
	MoreFaults  string // how many are not shown
	Proven      bool   // the contents may be shown

	Who, When  []fact
	Cards      []cardView
	Session    *sessionView
	Decisions  []entry
	Total      string
	Limited    string // how the list of decisions is limited; empty for a whole one
	Claims     []claim
	Limits     []string
	Terms      []term
	Commands   []string
	FileSHA256 string
}

// Write writes the page as HTML.
func (p *Page) Write(w io.Writer) error {
	v := p.view()
	page, err := template.New("page").Parse(pageText)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	var text bytes.Buffer
	if err := page.Execute(&text, v); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = w.Write(text.Bytes())
	return err
}

func (p *Page) view() *view {
	r := p.Report
	style := style + sheets(r.SHA256)
	sum := sha256.Sum256([]byte(style))
	v := &view{
		Style: template.CSS(style), Terms: terms, FileSHA256: r.SHA256,
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
		Tone:   "caution", VerdictTone: "plain",
		Conclusion: r.Conclusion(), Verdict: r.VerdictText(),
		Proven: r.Intact, Commands: p.commands(),
	}
	switch {
	case !r.Intact:
		v.Tone = "bad"
	case r.CoversAll() && r.KeyPinned:
		v.Tone = "good"
	}
	if r.Verdict != nil {
		v.VerdictTone = verdictTones[r.Verdict.RecommendedAction]
	}
	const most = 200
	for i, f := range r.Faults {
		if i == most {
			v.MoreFaults = counted(int64(len(r.Faults)-most), "more fault") + "."
			break
		}
		v.Faults = append(v.Faults, aivs.Fault{Where: short(f.Where), Message: long(f.Message), Detail: long(f.Detail)})
	}
	if !r.Intact {
		v.Limits = p.limits(nil)
		v.Who = []fact{quoted("The file says of itself that it is of session", short(r.SessionID))}
		if r.Opening != nil {
			v.Who = append(v.Who, quoted("and of agent", short(r.Opening.AgentID)))
		}
		return v
	}
	if r.Signature == aivs.SignatureValid && !r.KeyPinned {
		v.Unknown = "NOT CHECKED: who signed. Anyone can make a file that looks like this one and sign it with a key of their own."
	}
	agent := ""
	if r.Opening != nil {
		agent = r.Opening.AgentID
	}
	all := decisions(r, p.Contents)
	v.Cards, v.Limits = cards(p.Contents, agent), p.limits(all)
	v.Who, v.When = p.who(v.Cards), p.when(all)
	v.Session = session(r, p.Contents)
	v.Claims = p.claims()
	p.decisions(v, all)
	return v
}

// sheets returns a style that prints on each sheet of paper which file it is about, and its number, so
// that nobody can mix sheets of two reports. Browsers that do not know it leave it out.
func sheets(digest string) string {
	return fmt.Sprintf("@page { margin: 15mm 15mm 18mm; @bottom-left { font: 7pt monospace; content: \"SHA-256 of the file %s\"; } @bottom-right { font: 8pt sans-serif; content: counter(page) \" / \" counter(pages); } }\n", digest)
}

// decisions adds the decisions, and says which are not there.
func (p *Page) decisions(v *view, all []decision) {
	full := p.Full
	if full <= 0 {
		full = len(all)
	}
	v.Total = counted(p.total(), "decision")
	v.Decisions = entries(all, full)
	for i := range v.Decisions {
		if len(v.Cards) < 2 {
			v.Decisions[i].CardID = ""
		}
	}
	switch {
	case len(all) > full && p.total() > int64(len(all)):
		v.Limited = fmt.Sprintf("The file is too large for a page: only its first %s were read, and %d of them are shown in full.", counted(int64(len(all)), "row"), full)
	case p.total() > int64(len(all)):
		v.Limited = fmt.Sprintf("The file is too large for a page: only its first %s were read. All of it was verified.", counted(int64(len(all)), "row"))
	case p.Contents.cut():
		v.Limited = "The file is too large for a page: some of its records, verdicts or cards are not shown. All of it was verified."
	case len(all) > full:
		v.Limited = fmt.Sprintf("Of %s, %d are shown in full: those with the gravest violations and findings, and then the first ones. "+
			"Each run of the others has one line, which counts them. All of them were verified.", counted(int64(len(all)), "decision"), full)
	}
}

// total returns how many decisions the bundle has.
func (p *Page) total() int64 { return p.Contents.count }

var plainFileName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._=-]*$`)

// commands returns how to check the file again. They do not contain the key: whoever made the page
// chose it.
func (p *Page) commands() []string {
	name := p.File
	if !plainFileName.MatchString(name) {
		name = "BUNDLE.tar.gz"
	}
	return []string{
		"sha256sum " + name,
		"tar xzf " + name,
		"python3 -I session_proof/verify.py --key PUBLIC_KEY",
		"plumbline bundle verify " + name + " --key PUBLIC_KEY",
	}
}

// passed returns the sentence of a check that passed: the one that begins with its name.
func passed(r *aivs.Report, check string) string {
	for _, sentence := range r.Passed {
		if strings.HasPrefix(sentence, check+":") {
			return sentence
		}
	}
	return ""
}
