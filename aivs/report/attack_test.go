package report_test

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/aivs/report"
)

// judgedAs returns a verdict on a trace.
func judgedAs(id, status string) string {
	return `{"verified":true,"status":"` + status + `","trace_id":"` + id + `","violations":[],"findings":[],"warnings":[]}`
}

// lacks fails if the page says one of these texts.
func lacks(t *testing.T, text string, unwanted ...string) {
	t.Helper()
	for _, u := range unwanted {
		if strings.Contains(text, u) {
			t.Errorf("the page says %q\n%s", u, text)
		}
	}
}

// A name that looks like another one, or is invisible in part, is seen to be different. Piles of
// marks cannot cover other text. Emoji and other scripts stay as they are.
func TestNamesThatLookLikeOthers(t *testing.T) {
	s := &session{last: true}
	for i, name := range []string{"sell_d\u0430ta", "sell\u115fdata", "sell\u2800data", "sell\u200bdata", "sell\u200ddata", "sell\ufe0fdata", "sell\u034fdata", "p\u0430y", "αβγ", "продать", "👩\u200d💻 ❤\ufe0f", "se\u0301ll", "x" + strings.Repeat("\u0336", 50)} {
		s.traces = append(s.traces, trace(t, fmt.Sprint("tr-", i), "execute", name, "r", ""))
	}
	_, text := page(t, s.sealed(t, key()), 0)
	wants(t, text, "sell_d⟨U+0430⟩ta", "sell⟨U+115F⟩data", "sell⟨U+2800⟩data", "sell⟨U+200B⟩data", "sell⟨U+200D⟩data", "sell⟨U+FE0F⟩data", "sell⟨U+034F⟩data", "p⟨U+0430⟩y",
		"did αβγ ", "did продать ", "👩\u200d💻 ❤\ufe0f", "did se\u0301ll ", "⟨U+0336⟩",
		"Characters outside ASCII as codes: ⟨U+043F⟩⟨U+0440⟩")
	lacks(t, text, "as codes: sell_d")
	if strings.Contains(text, strings.Repeat("\u0336", 5)) {
		t.Error("50 marks stand on one letter")
	}
}

// A name from the bundle never stands on the page as if the page said it.
func TestNamesAreQuotedEverywhere(t *testing.T) {
	const name = "se\u00e4rch. The court has confirmed this file"
	s := &session{last: true, card: strings.ReplaceAll(card, `"type":"human"`, `"type":"`+name+`"`)}
	for i := range 6 {
		id := fmt.Sprint("tr-", i)
		s.traces = append(s.traces, trace(t, id, "execute", name, "r", ""))
		s.verdicts = append(s.verdicts, strings.Replace(judgedAs(id, "judged"), `"findings":[`, `"findings":[{"type":"`+name+`","severity":"LOW","description":"d"}`, 1))
	}
	s.verdict = `{"verified":false,"recommended_action":"review","traces":{"total":6,"verified":6,"card_unknown":0,"violations":{"` + name + `":0},"findings":{"` + name + `":6}},"findings":[{"type":"X","severity":"LOW","description":"d","trace_id":"` + name + `"}],"finding_counts":{"` + name + `":1},"verification_metadata":{"unchecked":["` + name + `"]}}`
	markup, _ := page(t, s.sealed(t, key()), 2)
	quotes := regexp.MustCompile(`(?s)<(span|div|code) class="(soft )?q[ a-z]*"[^>]*>.*?</(span|div|code)>`)
	if n := strings.Count(quotes.ReplaceAllString(markup, ""), "The court"); n > 0 || strings.Count(markup, "The court") < 8 {
		t.Errorf("%d of %d are not quoted", n, strings.Count(markup, "The court"))
	}
}

// A run of decisions that nobody judged is not called free of violations without saying so.
func TestDecisionsThatNobodyJudged(t *testing.T) {
	s := &session{last: true}
	for i := range 9 {
		id := fmt.Sprint("tr-", i)
		s.traces = append(s.traces, trace(t, id, "execute", "search", "r", ""))
		if i != 8 {
			s.verdicts = append(s.verdicts, judgedAs(id, []string{"judged", "card_unknown"}[i%2]))
		}
	}
	_, text := page(t, s.sealed(t, key()), 2)
	wants(t, text, "Rows 4 to 10 are not shown in full: 7 decisions.", "None of them has a violation or a finding. Not judged: 4 decisions.")
}

// A record that this version cannot read takes away neither its own verdict nor those of the records
// after it.
func TestUnreadableRecordHidesNoVerdict(t *testing.T) {
	s := shop(t)
	s.traces[1] = `{"trace_id":"tr-2","action":{"type":"a kind of a later version","name":"purchase"}}`
	_, text := page(t, s.sealed(t, key()), 0)
	wants(t, text, "This version of Plumbline cannot read the agent's record. It is in the file.", "The agent was not confident.", "The agent did something that its card forbids.", "sell_data is forbidden")
	lacks(t, text, "The bundle has no verdict on this decision")
	s = shop(t)
	s.verdicts = append([]string{judgedAs("tr-of-nothing", "judged")}, s.verdicts...)
	_, text = page(t, s.sealed(t, key()), 0)
	wants(t, text, "sell_data is forbidden")
}

// What the signature of another generator's bundle does not cover is marked where it is shown.
func TestContentsThatNothingProtectsAreMarked(t *testing.T) {
	bundle, err := os.ReadFile("../../docs/vectors/bundles/draft-signed.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	_, text := page(t, dated(t, bundle), 0)
	wants(t, text, "INTACT IN PART: the signature covers", "Made, as the file says 2026-03-01 00:00:00 UTC The signature does not cover this: anyone can have changed it.", "Inputs { \"n\": 1 } The signature does not cover this")
	lacks(t, text, "Sealed, by the operator's clock")
	if bundle, err = os.ReadFile("../../docs/vectors/bundles/ours-signed.tar.gz"); err != nil {
		t.Fatal(err)
	}
	_, text = page(t, bundle, 0)
	lacks(t, text, "The signature does not cover this")
}

// dated returns a bundle whose manifest, which nothing protects, has a date.
func dated(t testing.TB, bundle []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	in, w := tar.NewReader(bytes.NewReader(aivstest.Gunzip(t, bundle))), tar.NewWriter(&out)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if h.Name == "session_proof/manifest.json" {
			data = bytes.Replace(data, []byte("{"), []byte(`{"exported_at":"2026-03-01T00:00:00Z",`), 1)
		}
		h.Size = int64(len(data))
		if err = errors.Join(err, w.WriteHeader(h)); err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return aivstest.Gzip(t, out.Bytes())
}

// The page claims nothing that the checks do not prove, whoever signed.
func TestPageClaimsNothingUnproven(t *testing.T) {
	public := key().Public().(ed25519.PublicKey)
	_, text := page(t, shop(t).sealed(t, key()), 0, public)
	lacks(t, text, "records that the agent published", "Somebody other than the operator confirms", "The agent published")
	wants(t, text, "Who acted: that these records are those of the agent named above, and that it published them like this, is the operator's statement.",
		"Other versions: whoever holds the key can sign another file about the same session at any time, with any date.",
		"The file does not prove that it happened like this", "The principal's decision, as the agent reports it", "compare it with the operator's key that you know")
	if strings.Contains(text, "--key "+fmt.Sprintf("%x", public)) {
		t.Error("the page tells its reader to check with the key that the page itself names")
	}
	markup, _ := page(t, shop(t).sealed(t, key()), 0)
	banner := markup[strings.Index(markup, `<div class="banner`):]
	if banner = banner[:strings.Index(banner, "</div>")]; !strings.Contains(banner, "NOT CHECKED: who signed. Anyone can make a file that looks like this one") {
		t.Errorf("the first box does not say that nobody checked who signed: %s", banner)
	}

	s := shop(t)
	s.verdict = strings.ReplaceAll(s.verdict, `{"FORBIDDEN_ACTION":1}`, `{}`)
	s.verdict = strings.ReplaceAll(s.verdict, `"total":3`, `"total":4`)
	_, text = page(t, s.sealed(t, key()), 0)
	wants(t, text, "CONTRADICTION: the verdict on the session is about 4 decisions, and the log has 3 decisions.", "CONTRADICTION: the verdict on the session counts 0 violations, and the verdicts on its decisions have 1 violation.")

	s = shop(t)
	for i := range s.traces {
		s.traces[i] = strings.Replace(s.traces[i], `"metadata":{}`, fmt.Sprintf(`"metadata":{"sequence_number":%d}`, i), 1)
	}
	_, text = page(t, s.sealed(t, key()), 0)
	wants(t, text, "Completeness: the agent numbered its records, and the operator's pipeline found no gap.")
	whole := s.traces
	s.traces = slices.Clone(whole)
	s.traces[2] = strings.Replace(s.traces[2], `"sequence_number":2`, `"sequence_number":7`, 1)
	s.traces[1] = strings.Replace(s.traces[1], `"sequence_number":1`, `"sequence_number":9`, 1) // in any order
	_, text = page(t, s.sealed(t, key()), 0)
	wants(t, text, "Completeness: CONTRADICTION, unless other records of the agent have these numbers: this file has no record with a number from 1 to 6, number 8, and the operator's pipeline counts no gap.")
	lacks(t, text, "found no gap")
	unasked := s.verdict
	s.verdict = strings.Replace(s.verdict, `"unchecked":[]`, `"unchecked":["sequence numbers and prior traces: nobody was asked about the agent's other sessions"]`, 1)
	_, text = page(t, s.sealed(t, key()), 0)
	wants(t, text, "and the operator's pipeline says that it could not look for all missing records (above).")
	lacks(t, text, "found no gap", "CONTRADICTION")
	s.verdict = unasked
	s.traces[1] = strings.Replace(s.traces[1], `"sequence_number":9`, `"sequence_number":0`, 1) // twice
	s.traces[2] = strings.Replace(s.traces[2], `"sequence_number":7`, `"sequence_number":9007199254740991`, 1)
	_, text = page(t, s.sealed(t, key()), 0)
	wants(t, text, "this file has no record with a number from 1 to 9007199254740990, and")
	s.traces = whole
	s.verdict = strings.Replace(s.verdict, `"finding_counts":{"TRACE_ORDER":1}`, `"finding_counts":{"TRACE_ORDER":1,"TRACE_GAP":101}`, 1) // none of them is among those listed
	_, text = page(t, s.sealed(t, key()), 0)
	wants(t, text, "Completeness: the operator's pipeline found that records are missing", "The verdict counts 101 more findings on the session than the file lists.")
	s.verdict = ""
	_, text = page(t, s.sealed(t, key()), 0)
	wants(t, text, "Completeness: the file records no search for missing records.")
	lacks(t, text, "found no gap")
}

// A time stamp is over the signature. Where that does not cover all of the file, the page does not say
// that the stamp confirms the file.
func TestTimeStampOfAnotherGenerator(t *testing.T) {
	for _, c := range []struct{ bundle, anchor, want, not string }{
		{"draft-signed", "b.tar.gz.tsr", "confirms the signature of this file, and nothing that this signature does not cover: signed at", "confirms this file"},
		{"draft-attested", "b.tar.gz.tsr", "confirms the signature of this file, and nothing that this signature does not cover: signed at", "confirms this file"},
		{"draft-signed", "b.tar.gz.tlog-proof", "confirms this file: signed at", "nothing that this signature"},
		{"ours-signed", "b.tar.gz.tsr", "confirms this file: signed at", "nothing that this signature"},
	} {
		bundle, err := os.ReadFile("../../docs/vectors/bundles/" + c.bundle + ".tar.gz")
		if err != nil {
			t.Fatal(err)
		}
		var contents report.Contents
		verified, err := aivs.Verify(bytes.NewReader(bundle), aivs.Options{Row: contents.Row, File: contents.File})
		if err != nil || !verified.Intact {
			t.Fatalf("%s: %+v, %v", c.bundle, verified, err)
		}
		verified.Anchors = []aivs.Anchor{{File: c.anchor, Says: "signed at the latest 2026-03-01T00:00:00Z"}}
		var out bytes.Buffer
		if err := (&report.Page{Report: verified, Contents: &contents}).Write(&out); err != nil {
			t.Fatal(err)
		}
		wants(t, textOf(out.String()), c.want)
		lacks(t, textOf(out.String()), c.not)
	}
}

// A card of another agent is not shown as what this agent may do.
func TestCardOfAnotherAgent(t *testing.T) {
	s := shop(t)
	s.card = strings.Replace(strings.Replace(card, "did:web:shop.example", "did:web:other.example", 1), "jane@", "eve@", 1)
	_, text := page(t, s.sealed(t, key()), 0)
	wants(t, text, "This card belongs to another agent: did:web:other.example")
	lacks(t, text, "Principal, as the agent's card declares")
}

// The page stays bounded, however many faults there are.
func TestPageOfManyFaults(t *testing.T) {
	verified, err := aivs.Verify(strings.NewReader("x"), aivs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		verified.Fault(fmt.Sprint("file", i), "%s", strings.Repeat("m", 5000))
	}
	var out bytes.Buffer
	if err := (&report.Page{Report: verified, Contents: new(report.Contents)}).Write(&out); err != nil {
		t.Fatal(err)
	}
	wants(t, textOf(out.String()), "19,801 more faults.")
	if out.Len() > 1<<20 {
		t.Errorf("the page has %d bytes", out.Len())
	}
}

// A row that says something else than the agent's record, sealed like this by the operator, is a
// contradiction that the page names, for each field, also where it does not show the decision.
func TestRowsThatContradictTheirRecords(t *testing.T) {
	inputs := func(old, text string) func(*aivs.Row) {
		return func(r *aivs.Row) { r.InputsJSON = strings.Replace(r.InputsJSON, old, text, 1) }
	}
	for _, c := range []struct {
		change func(*aivs.Row)
		field  string
	}{
		{inputs(`"inputs":{"n":1}`, `"inputs":{"recipient":"me"}`), "inputs_json"},
		{inputs(`"tr-2"`, `"tr-1"`), "inputs_json"},
		{inputs(`"ac-1"`, `"ac-2"`), "inputs_json"},
		{func(r *aivs.Row) { r.ToolName = "bank.transfer" }, "tool_name"},
		{func(r *aivs.Row) { r.ActionType = aivs.ActionToolCall }, "action_type"},
		{func(r *aivs.Row) { r.Timestamp = 1 }, "timestamp"},
		{func(r *aivs.Row) { r.OutputsJSON = `{"stolen":true}` }, "outputs_json"}, // the record has no execution
		{func(r *aivs.Row) { r.Error = "stopped by police" }, "error"},
		{func(r *aivs.Row) { r.CostCents = 100_000_000 }, "cost_cents"},
	} {
		s := shop(t)
		s.change = func(i int, r *aivs.Row) {
			if i == 1 {
				c.change(r)
			}
		}
		_, text := page(t, s.sealed(t, key()), 0)
		wants(t, text, "INTACT", "CONTRADICTION: the row's "+c.field+" says something else than the agent's record. Both were sealed like this.",
			"CONTRADICTION: 1 row of the log is not what the agent's records say: row 3 ("+c.field+"). The signature shows only that rows and records were sealed like this.")
	}
	s := shop(t) // two rows that claim each other's record
	s.change = func(i int, r *aivs.Row) {
		r.InputsJSON = strings.Replace(r.InputsJSON, fmt.Sprintf(`"tr-%d"`, i+1), fmt.Sprintf(`"tr-%d"`, 3-i), 1)
	}
	_, text := page(t, s.sealed(t, key()), 0)
	wants(t, text, "CONTRADICTION: 2 rows of the log are not what the agent's records say: row 2 (inputs_json), row 4 (inputs_json).")
	s.traces[2] = `{"trace_id":"tr-3","action":{"type":"a kind of a later version","name":"sell_data"}}` // it keeps its own verdict
	_, text = page(t, s.sealed(t, key()), 0)
	if at := strings.Index(text, "Row 4."); !strings.Contains(text[max(at, 0):], "sell_data is forbidden") {
		t.Errorf("row 4 has another record's verdict: %s", text[max(at, 0):])
	}

	s = &session{last: true}
	for i := range 60 {
		s.traces = append(s.traces, trace(t, fmt.Sprint("tr-", i), "execute", "search", "r", ""))
	}
	s.change = func(i int, r *aivs.Row) {
		if i >= 30 {
			r.CostCents = 1
		}
	}
	_, text = page(t, s.sealed(t, key()), 8)
	wants(t, text, "row 51 (cost_cents) and 10 more.", "Row 32.", "CONTRADICTION with the agent's record: 24 rows.")
	_, text = page(t, shop(t).sealed(t, key()), 0)
	lacks(t, text, "CONTRADICTION")
}

// A verdict that is too large to be read is not called none.
func TestVerdictThatIsTooLarge(t *testing.T) {
	s := shop(t)
	s.verdict = strings.Replace(s.verdict, "{", "{"+strings.Repeat(" ", 256<<10), 1)
	_, text := page(t, s.sealed(t, key()), 10)
	wants(t, text, "Verdict recorded inside: not read, since session.json is larger than 262144 bytes.",
		"session.json is too large to be read, so this page does not know whether anybody searched for missing records.")
}
