package redact

import "testing"

// All printable ASCII characters have a full-width form, which plainRune maps to them. The
// characters next to those forms stay unchanged.
func TestFullWidthForms(t *testing.T) {
	for r := '!'; r <= '~'; r++ {
		if got := plainRune(r - '!' + '！'); got != r {
			t.Errorf("the full-width form of %c became %c", r, got)
		}
	}
	for _, r := range []rune{'！' - 1, '～' + 1} {
		if got := plainRune(r); got != r {
			t.Errorf("%U became %U", r, got)
		}
	}
}

// The text around a disguised name and its value stays as it was written.
func TestDisguisesInText(t *testing.T) {
	checkTexts(t, []textCase{
		{"characters of several bytes", "é ｐａｓｓｗｏｒｄ＝hünter2！ é", "é ｐａｓｓｗｏｒｄ＝[REDACTED]！ é"},
		{"nothing but such characters", "ｐａｓｓｗｏｒｄ＝ｈｕｎｔｅｒ２", "ｐａｓｓｗｏｒｄ＝[REDACTED]"},
		{"characters of no width", "é pass\u200bword=hün\u200bter2 é\u200b", "é pass\u200bword=[REDACTED] é\u200b"},
	})
	const text = "the key: ｐａｓｓｗｏｒｄ＝hunter2"
	if got, _ := (AllRules &^ RuleUnicode).Text(text); got != text {
		t.Errorf("without the rule, %s became %s", text, got)
	}
}
