package aivs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// part returns a bundle of that part of the session, as Verify reports it.
func part(path, session string, number int64, last bool, digest, previous string) Located {
	return Located{path, &Report{SHA256: digest, Opening: &Opening{SessionID: session, AgentID: "a", Part: number, LastPart: last, PreviousBundleHash: previous}}}
}

// at returns a part with that export time.
func at(l Located, unix int64) Located {
	report, opening := *l.Report, *l.Report.Opening
	opening.ExportedAt = exportedAt(unix)
	report.Opening = &opening
	return Located{l.Path, &report}
}

// sameTar returns a part whose archive is always the same.
func sameTar(l Located) Located {
	report := *l.Report
	report.TarSHA256 = "t"
	return Located{l.Path, &report}
}

func TestCollection(t *testing.T) {
	one, two, three := part("1", "s", 1, false, "d1", ""), part("2", "s", 2, false, "d2", "d1"), part("3", "s", 3, true, "d3", "d2")
	late := part("4", "s", 4, true, "d4", "d3")
	other := part("x", "t", 1, true, "dx", "")
	foreign := Located{"f", &Report{SHA256: "df"}}
	of := func(path, session, signer, digest, previous string) Located {
		return Located{path, &Report{SessionID: session, PublicKey: signer, SHA256: digest, PreviousBundleHash: previous}}
	}
	for name, c := range map[string]struct {
		bundles  []Located
		sessions int
		faults   []string
		open     int
		late     int
	}{
		"nothing":                        {nil, 0, nil, 0, 0},
		"whole":                          {[]Located{three, other, one, foreign, two}, 2, nil, 0, 0},
		"late traces":                    {[]Located{one, two, three, late}, 1, nil, 0, 1},
		"not ended":                      {[]Located{one, two}, 1, nil, 1, 0},
		"first missing":                  {[]Located{two, three}, 1, []string{`session "s" of agent "a": part 1 is missing`}, 0, 0},
		"middle missing":                 {[]Located{one, three}, 1, []string{`part 2 is missing`}, 0, 0},
		"a copy":                         {[]Located{one, part("1b", "s", 1, false, "d1", ""), two, three}, 1, nil, 0, 0},
		"continued from a twin":          {[]Located{part("0", "s", 1, false, "d0", ""), one, two, three}, 1, []string{`part 1 was sealed twice: 0 and 1`}, 0, 0},
		"sealed twice":                   {[]Located{one, two, part("2b", "s", 2, false, "e2", "d1"), three}, 1, []string{`part 2 was sealed twice: 2 and 2b`}, 0, 0},
		"wrong predecessor":              {[]Located{one, part("2", "s", 2, true, "d2", "e1")}, 1, []string{`2: its previous bundle is "e1", the part before has "d1"`}, 0, 0},
		"no predecessor":                 {[]Located{one, part("2", "s", 2, true, "d2", "")}, 1, []string{`its previous bundle is ""`}, 0, 0},
		"first has one":                  {[]Located{part("1", "s", 1, true, "d1", "zz")}, 1, []string{`its previous bundle is "zz"`}, 0, 0},
		"reopened":                       {[]Located{one, two, three, part("4", "s", 4, false, "d4", "d3")}, 1, nil, 1, 1},
		"exported in order":              {[]Located{at(one, 5), at(two, 5), at(three, 6)}, 1, nil, 0, 0},
		"exported backwards":             {[]Located{at(one, 5), at(two, 4), at(three, 6)}, 1, []string{`2: exported at 1970-01-01T00:00:04Z, before part 1 (1970-01-01T00:00:05Z)`}, 0, 0},
		"one archive compressed twice":   {[]Located{one, sameTar(two), sameTar(part("2b", "s", 2, false, "e2", "d1")), three}, 1, nil, 0, 0},
		"agents are separate":            {[]Located{other, {"y", &Report{SHA256: "dy", Opening: &Opening{SessionID: "t", AgentID: "b", Part: 1, LastPart: true}}}}, 2, nil, 0, 0},
		"other generators, linked":       {[]Located{of("g", "s", "k", "dg", ""), one, two, three, of("h", "s", "k", "dh", "dg")}, 1, nil, 0, 0},
		"other generators, a copy":       {[]Located{of("g", "s", "k", "dg", ""), of("h", "s", "k", "dg", "")}, 0, nil, 0, 0},
		"other generators, two signers":  {[]Located{of("g", "s", "k", "dg", ""), of("h", "s", "l", "dh", "")}, 0, nil, 0, 0},
		"other generators, sealed twice": {[]Located{of("g", "s", "k", "dg", ""), of("h", "s", "k", "dh", "")}, 0, []string{`session "s": was sealed twice: g and h`}, 0, 0},
		"other generators, forked":       {[]Located{of("g", "s", "k", "dg", ""), of("h", "s", "k", "dh", "dg"), of("i", "s", "k", "di", "dg")}, 0, []string{`was sealed twice: h and i`}, 0, 0},
		"other generators, link missing": {[]Located{of("g", "s", "k", "dg", ""), of("h", "s", "k", "dh", "xx")}, 0, []string{`h: its previous bundle xx is not here`}, 0, 0},
	} {
		got := CheckCollection(c.bundles)
		var faults []string
		for _, f := range got.Faults {
			faults = append(faults, f.Where+": "+f.Message)
		}
		same := slices.EqualFunc(faults, c.faults, strings.Contains)
		if got.Sessions != c.sessions || !same || len(got.Open) != c.open || len(got.Late) != c.late {
			t.Errorf("%s: %d sessions, %q, open %q, late %q", name, got.Sessions, faults, got.Open, got.Late)
		}
	}
}

// TestCollectionOfRealBundles links two parts that were built.
func TestCollectionOfRealBundles(t *testing.T) {
	first := sampleInput(2)
	first.Part, first.LastPart, first.PreviousBundleSHA256 = 1, false, ""
	one := build(t, first, testKey("k"))
	second := sampleInput(2)
	second.Part, second.LastPart, second.PreviousBundleSHA256 = 2, true, one.SHA256
	two := build(t, second, testKey("k"))
	var found []Located
	for i, b := range []*Bundle{one, two} {
		found = append(found, Located{fmt.Sprint(i), judge(t, b.Bytes, Options{})})
	}
	if got := CheckCollection(found); len(got.Faults) != 0 || len(got.Open) != 0 || got.Sessions != 1 {
		t.Errorf("%+v", got)
	}
}
