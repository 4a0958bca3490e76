package webhook

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/subject"
)

var python = regexp.MustCompile("(?s)```python\n(.*?)```")

// The receiver of docs/WEBHOOKS.md takes alerts, knows one that comes again, and refuses those by another secret.
func TestReceiverOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/WEBHOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := python.FindAllStringSubmatch(string(text), -1)
	if len(programs) != 1 {
		t.Fatalf("%d programs in the document, want 1", len(programs))
	}
	s := newSite(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/", port)
	known, foreign := s.endpoint("known", url), s.endpoint("foreign", url)
	foreign.Attempts = 1
	program := filepath.Join(s.dir, "receiver.py")
	s.write(program, programs[0][1])
	process := exec.CommandContext(t.Context(), "python3", "-I", program, known.SecretFile, fmt.Sprint(port))
	process.Stderr = t.Output()
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	again := s.endpoint("again", url)
	again.SecretFile = known.SecretFile
	s.run(known, foreign, again)
	lines := bufio.NewScanner(output)
	for n := range 3 {
		id := s.raise(subject.AlertViolation, n, critical)
		if !lines.Scan() || lines.Text() != "alert.violation "+id {
			t.Fatalf("the receiver printed %q (%v), want alert.violation %s", lines.Text(), lines.Err(), id)
		}
	}
	pipelinetest.Await(t, "the metrics", func() bool {
		return s.metric("plumbline_webhook_alerts_total", "known", "delivered") == 3 && s.metric("plumbline_webhook_alerts_total", "again", "delivered") == 3 &&
			s.metric("plumbline_webhook_alerts_total", "foreign", "given_up") == 3
	})
}
