package aivs

import (
	"bytes"
	"crypto/ed25519"
	"io"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

func TestBundleVerifies(t *testing.T) {
	key := testKey("k")
	for _, traces := range []int{0, 1, 9} {
		bundle := build(t, sampleInput(traces), key)
		report := judge(t, bundle.Bytes, Options{Keys: []ed25519.PublicKey{publicOf(key)}})
		if !report.Intact || report.Dialect != DialectPlumbline || !report.KeyPinned {
			t.Errorf("%d traces: %+v", traces, report)
		}
		if report.SHA256 != bundle.SHA256 || report.ChainHash != bundle.ChainHash || report.Rows != int64(traces+2) {
			t.Errorf("%d traces: the report %+v is not of the bundle %+v", traces, report, bundle)
		}
		if report.SessionID != "sess:a/ü%1" || report.Opening.Part != 2 || report.Opening.AgentID != "agent:7" {
			t.Errorf("opening %+v", report.Opening)
		}
	}
}

func TestVerifyCallsRowInOrder(t *testing.T) {
	var tools []string
	judge(t, build(t, sampleInput(2), testKey("k")).Bytes, Options{Row: func(r *Row) { tools = append(tools, r.ToolName) }})
	if len(tools) != 4 || tools[0] != openTool || tools[1] != "agent%3A7%25.read" || !strings.HasPrefix(tools[3], sealTool) {
		t.Errorf("rows %q", tools)
	}
}

func TestReportText(t *testing.T) {
	var text strings.Builder
	report := judge(t, build(t, sampleInput(1), testKey("k")).Bytes, Options{})
	if err := report.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"plumbline-1", "INTACT: this bundle is unchanged", "PASS  traces: 1 lines, one for each row", "SKIP  NOT CHECKED: who signed", "Not proven:", "Verified does NOT equal safe."} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

func TestBundleIsReproducible(t *testing.T) {
	first, second := build(t, sampleInput(20), testKey("k")), build(t, sampleInput(20), testKey("k"))
	if !bytes.Equal(first.Bytes, second.Bytes) {
		t.Error("the same input and key gave different bytes")
	}
	if first.FileName != "aivs_proof_sess_a___1773502245.tar.gz" {
		t.Errorf("file name %s", first.FileName)
	}
}

func TestBundleIsASCII(t *testing.T) {
	content := aivstest.Gunzip(t, build(t, sampleInput(3), testKey("k")).Bytes)
	if i := bytes.IndexFunc(content, func(r rune) bool { return r > 0x7e }); i >= 0 {
		t.Errorf("byte %#x at %d", content[i], i)
	}
}

func TestUnsignedBundle(t *testing.T) {
	bundle := build(t, sampleInput(2), nil)
	if report := judge(t, bundle.Bytes, Options{}); !report.Intact || report.Signature != SignatureAbsent {
		t.Errorf("%+v", report)
	}
	if report := judge(t, bundle.Bytes, Options{RequireSignature: true}); report.Intact {
		t.Error("an unsigned bundle passed where a signature is required")
	}
}

func TestForeignKeyIsRefused(t *testing.T) {
	bundle := build(t, sampleInput(2), testKey("attacker"))
	report := judge(t, bundle.Bytes, Options{Keys: []ed25519.PublicKey{publicOf(testKey("a")), publicOf(testKey("b"))}})
	if report.Intact || report.KeyPinned || report.Signature != SignatureValid {
		t.Errorf("%+v", report)
	}
}

func TestStreamedMembersGiveTheSameBytes(t *testing.T) {
	in := sampleInput(5)
	want := build(t, in, testKey("k"))
	for i := range in.Members {
		data := in.Members[i].Data
		in.Members[i].Data = nil
		in.Members[i].Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	}
	var streamed bytes.Buffer
	got, err := Write(&streamed, in, testKey("k"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(streamed.Bytes(), want.Bytes) || got.SHA256 != want.SHA256 || got.Size != want.Size {
		t.Error("streaming changed the bundle")
	}
}
