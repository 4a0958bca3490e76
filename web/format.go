package web

import (
	"fmt"
	"html/template"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/auth"
)

// functions are those of the templates. Each returns text, which html/template escapes.
func (s *server) functions() template.FuncMap {
	meanings := readMeanings()
	return template.FuncMap{
		"asset":     func(name string) string { return s.assets[name].address },
		"ago":       func(at time.Time) string { return ago(s.now().Sub(at)) },
		"when":      when,
		"machine":   func(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) },
		"number":    number[uint64],
		"seconds":   seconds,
		"score":     score,
		"words":     words,
		"direction": direction,
		"percents":  func(text string) string { return strings.ReplaceAll(text, " %", "\u00a0%") }, // which no line begins with
		"lower":     strings.ToLower,
		"plural":    plural,
		"nouns":     nouns,
		"less":      func(n uint64) uint64 { return n - 1 },
		"short":     func(hash string) string { return hash[:min(len(hash), 16)] },
		"len64":     func(list any) uint64 { return uint64(reflect.ValueOf(list).Len()) },
		"sessionAt": sessionAddress,
		"chainAt":   chainAddress,
		"anyone":    func(name string) bool { return name == auth.Anyone },
		"parts":     parts,
		"meaning":   func(kind string) string { return meanings[kind] },
		"base":      func(name string) string { return path.Base(filepath.ToSlash(name)) },
		"last":      func(rows []aivs.Row) int { return len(rows) - 1 },
		"duration":  func(d time.Duration) string { return seconds(d.Seconds()) },
	}
}

// when returns a time for people, to the second in UTC.
func when(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") }

// ago returns how long something is past, in its largest unit.
func ago(d time.Duration) string {
	switch {
	case d <= -2*time.Second: // a clock that is ahead
		return "in " + strings.TrimSuffix(ago(-d), " ago")
	case d < 2*time.Second:
		return "just now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// number returns a whole number with a thin space between groups of three digits.
func number[T ~uint64 | ~uint32 | ~int](n T) string {
	digits := fmt.Sprint(n)
	var text strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			text.WriteRune('\u2009')
		}
		text.WriteRune(digit)
	}
	return text.String()
}

// seconds returns a time of so many seconds.
func seconds(s float64) string {
	switch {
	case s < 0.9995:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 99.5:
		return fmt.Sprintf("%.1f s", s)
	}
	return strings.TrimSuffix(ago(time.Duration(s*float64(time.Second))), " ago")
}

// words returns a word of the pipeline, such as value_drift, as people write it.
func words(word string) string { return strings.ReplaceAll(word, "_", " ") }

// direction returns the kind of a drift. AAP section 8.5 has no name for some changes.
func direction(kind string) string {
	if kind == "unknown" {
		return "other change"
	}
	return words(kind)
}

// plural returns a number and a noun, which gets an s unless the number is 1.
func plural(n any, noun string) string {
	count := fmt.Sprint(n)
	if n, err := strconv.ParseUint(count, 10, 64); err == nil {
		count = number(n)
	}
	return count + " " + nouns(n, noun)
}

// nouns returns the noun of a number that is elsewhere, with an s unless the number is 1.
func nouns(n any, noun string) string {
	if fmt.Sprint(n) == "1" {
		return noun
	}
	return noun + "s"
}

// score returns a share or a similarity, from 0 to 1.
func score(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

// shortestPart is how many bytes a part of a name has at least.
const shortestPart = 3

// parts splits a name behind its punctuation, where a narrow page may break it: by itself a browser breaks it within a word.
func parts(name string) (all []string) {
	begin := 0
	for i := range len(name) {
		if end := i + 1; strings.IndexByte(":./-_@#", name[i]) >= 0 && end-begin >= shortestPart && len(name)-end >= shortestPart {
			all, begin = append(all, name[begin:end]), end
		}
	}
	return append(all, name[begin:])
}
