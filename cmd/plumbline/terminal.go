package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"golang.org/x/term"
	"golang.org/x/time/rate"
)

// isTerminal reports whether a reader or writer is a terminal.
func isTerminal(of any) bool {
	file, is := of.(*os.File)
	if !is {
		return false
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	is = false
	err = conn.Control(func(handle uintptr) { is = term.IsTerminal(int(handle)) })
	return is && err == nil
}

// obeysControls reports whether output goes to a terminal that can erase a line and show colors.
func obeysControls(to any) bool {
	name := os.Getenv("TERM")
	return name != "" && name != "dumb" && isTerminal(to)
}

// color is a color of the terminal's own palette.
type color string

const (
	red    color = "\x1b[31m"
	green  color = "\x1b[32m"
	yellow color = "\x1b[33m"
)

// inColor returns a text for an output: in color if that is a terminal and NO_COLOR is not set
// (no-color.org).
func inColor(to any, c color, text string) string {
	if os.Getenv("NO_COLOR") != "" || !obeysControls(to) {
		return text
	}
	return string(c) + text + "\x1b[m"
}

// verdictWords are the words with which a line of verify or check begins.
var verdictWords = []struct {
	color color
	words *regexp.Regexp
}{
	{green, regexp.MustCompile(`(?m)^ *(PASS|INTACT|OK)(:|  |$)`)},
	{red, regexp.MustCompile(`(?m)^ *(FAIL|NOT INTACT|WEAK|DIFFERS)(:|  |$)`)},
	{yellow, regexp.MustCompile(`(?m)^ *(SKIP|SKIPPED|UNKNOWN|INTACT, NOT SIGNED|INTACT IN PART)(:|  |$)`)},
}

// verdictWriter shows the words of verdicts in color. What is written ends with a line.
type verdictWriter struct{ to io.Writer }

func (w verdictWriter) Write(text []byte) (int, error) {
	shown := text
	for _, v := range verdictWords {
		shown = v.words.ReplaceAllFunc(shown, func(word []byte) []byte { return []byte(inColor(w.to, v.color, string(word))) })
	}
	if _, err := w.to.Write(shown); err != nil {
		return 0, err
	}
	return len(text), nil
}

// statusLine is a line on a terminal that shows how far a command is.
type statusLine struct {
	to    *os.File
	shown bool
}

func (l *statusLine) write(text string) {
	l.shown = true
	fmt.Fprint(l.to, "\r\x1b[K"+text)
}

// clear erases the line for other output.
func (l *statusLine) clear() {
	if l.shown {
		fmt.Fprint(l.to, "\r\x1b[K")
	}
	l.shown = false
}

// progress shows how many lines were processed, if the output is a terminal.
type progress struct {
	statusLine
	done  string // what is done with each line
	began time.Time
	often rate.Sometimes
}

func newProgress(to *os.File, done string) *progress {
	return &progress{statusLine: statusLine{to: to}, done: done, began: time.Now(), often: rate.Sometimes{Interval: 200 * time.Millisecond}}
}

func (p *progress) show(n int) {
	p.often.Do(func() {
		if obeysControls(p.to) {
			p.write(fmt.Sprintf("%d %s, %.0f/s", n, p.done, float64(n)/time.Since(p.began).Seconds()))
		}
	})
}

// fetching shows the progress of the engine's first download until end is called: on a terminal in one line,
// elsewhere in a line every ten seconds.
func (con *console) fetching(size int64, fetched func() int64) (end func()) {
	every, show := 10*time.Second, func(text string) { fmt.Fprintln(con.errs, text) }
	line := &statusLine{to: con.errs}
	if obeysControls(con.errs) {
		every, show = 250*time.Millisecond, line.write
	}
	tick, stop, stopped := time.NewTicker(every), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-tick.C:
				show(fmt.Sprintf("fetching the ClickHouse engine: %d of %d MB so far", fetched()/1_000_000, size/1_000_000))
			case <-stop:
				return
			}
		}
	}()
	return func() {
		tick.Stop()
		close(stop)
		<-stopped
		line.clear()
	}
}
