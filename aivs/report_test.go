package aivs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// The report on a bundle that cannot be read says why, and that the bundle is not intact.
func TestUnreadable(t *testing.T) {
	sayFaults(t, "a closed file", Unreadable(errors.New("permission denied")), "archive: permission denied")
}

// A fault of a file next to the bundle removes from the report what only an intact bundle has. A
// check that could not be done removes nothing.
func TestFaultsOfFilesNextToTheBundle(t *testing.T) {
	const verdict = `{"verified":true,"recommended_action":"proceed","traces":{"total":3}}`
	bundle := build(t, judged(verdict), testKey("k")).Bytes
	report := judge(t, bundle, Options{})
	report.Skip("transparency log: not asked")
	if !slices.Contains(report.Skipped, "transparency log: not asked") || !report.Intact || report.Verdict == nil || len(report.Covered) == 0 {
		t.Errorf("after a skip: %+v", report)
	}
	report.Fault("b.tar.gz.tsr", "a stamp of %d", 2020)
	sayFaults(t, "next to the bundle", report, "b.tar.gz.tsr: a stamp of 2020")
	if report.Verdict != nil || report.Covered == nil || len(report.Covered) > 0 || report.Signature != SignatureValid {
		t.Errorf("after a fault: %+v", report)
	}
}

// The text for people has a line for each fact, and quotes text from the bundle.
func TestReportLines(t *testing.T) {
	report := &Report{Dialect: DialectDraft, SessionID: "s\x1b[2J", Rows: 3, ChainHash: "c0", Signature: SignatureAbsent,
		Passed:    []string{"files: \x1b"},
		Faults:    []Fault{{"row 2", "changed", ""}, {"x\x1b", "not a file", "é"}},
		Anchors:   []Anchor{{"b.tsr\n", "stamped"}},
		Skipped:   []string{"who signed."},
		NotProven: []string{"Time", "Key"}}
	const facts = "dialect    aivs-00\n" + `session    "s\x1b[2J"` + "\nrows       3 read before a fault was found\nchain hash c0\n"
	const rest = `PASS  files: \u001b` + "\n" + `PASS  b.tsr\n: stamped` + "\n" + "FAIL  row 2: changed\n" + `FAIL  x\u001b: not a file` + "\n      \\u00e9\nSKIP  NOT CHECKED: who signed.\n\n"
	const end = "NOT INTACT: do not rely on this bundle.\nVerdict recorded inside: not read, since the bundle is not intact.\n\nNot proven:\n  Time\n  Key\n"
	saysText(t, report, facts+"signature  absent\n"+rest+end)
	report.Signature, report.PublicKey, report.KeyID, report.KeyPinned = SignatureInvalid, "ab12", "cd34", true
	saysText(t, report, facts+"signature  invalid ab12 (key id cd34, pinned: true)\n"+rest+end)
}

func saysText(t *testing.T, report *Report, want string) {
	t.Helper()
	var text strings.Builder
	if err := report.WriteText(&text); err != nil || text.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, &text, want)
	}
}

// The figures of a recorded verdict are sums of integers below 2^31; any other value counts as 0.
func TestFiguresOfTheVerdict(t *testing.T) {
	for written, want := range map[string]int64{"0": 0, "1": 1, "2147483647": 1<<31 - 1, "2147483648": 0, "99999999999999999999": 0,
		"-1": 0, "1.0": 0, "1e3": 0, `"1"`: 0, "null": 0} {
		text := fmt.Sprintf(`{"verified":false,"recommended_action":"deny","traces":{"total":%[1]s,"violations":{"A":%[1]s},"findings":{"B":%[1]s,"C":2}},"finding_counts":{"D":%[1]s,"E":3}}`, written)
		if got := parseVerdict([]byte(text)); got == nil || *got != (RecordedVerdict{schema.Deny, false, want, want, 2*want + 5}) {
			t.Errorf("%s: %+v", written, got)
		}
	}
	both := `{"verified":false,"recommended_action":"deny","traces":{"violations":{"A":2147483647,"B":2147483648,"C":1,"D":0,"E":-1}},"finding_counts":{"F":1}}`
	if said := bothSay(t, build(t, judged(both), testKey("k")).Bytes); !strings.HasSuffix(said, "DENY (2147483648 violations, 1 finding).") {
		t.Error(said)
	}
}

// Text that lacks one of the members, or has it in another form, is not a verdict.
func TestWhatIsNoVerdict(t *testing.T) {
	const whole = `{"verified":false,"recommended_action":"deny","traces":{}}`
	for text, want := range map[string]bool{
		whole: true,
		strings.Replace(whole, "deny", "proceed", 1):                                               true,
		strings.Replace(whole, "deny", "review", 1):                                                true,
		strings.Replace(whole, "deny", "Deny", 1):                                                  false,
		strings.Replace(whole, "verified", "verifies", 1):                                          false,
		strings.Replace(whole, "recommended_action", "recommends", 1):                              false,
		strings.Replace(whole, "traces", "rows", 1):                                                false,
		strings.Replace(whole, "false", "0", 1):                                                    false,
		strings.Replace(whole, "{}", "[]", 1):                                                      false,
		strings.Replace(whole, "{}", "null", 1):                                                    false,
		strings.Replace(whole, "{}", strings.Repeat(`{"a":`, 500)+"1"+strings.Repeat("}", 500), 1): false, // too deep
		"": false, "null": false, "[]": false,
	} {
		if got := parseVerdict([]byte(text)); (got != nil) != want {
			t.Errorf("%.80s: %+v", text, got)
		}
	}
}
