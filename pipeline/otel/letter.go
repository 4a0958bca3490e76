package otel

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/plumbline/plumbline/schema"
)

// attributeIncomplete is an attribute of the scope of a dead letter that has only a part of its span.
const attributeIncomplete = "plumbline.incomplete"

// Letter returns the bytes of the dead letter of a span: an OTLP request in JSON with this span, and of
// its resource and scope what the table reads. Of a span that is larger than a trace may be it has the
// attributes that are not large, and says in its scope that it is incomplete. It is empty if the span
// cannot be written.
func Letter(resource pcommon.Resource, scope pcommon.InstrumentationScope, span ptrace.Span) []byte {
	one := ptrace.NewTraces()
	spans := one.ResourceSpans().AppendEmpty()
	for name, v := range resource.Attributes().All() {
		if v.Type() == pcommon.ValueTypeStr && len(v.Str()) <= schema.MaxIDBytes && (ofResource[name] || isService(name)) {
			spans.Resource().Attributes().PutStr(name, v.Str())
		}
	}
	inner := spans.ScopeSpans().AppendEmpty()
	inner.Scope().SetName(schema.Clip(scope.Name(), schema.MaxIDBytes))
	inner.Scope().SetVersion(schema.Clip(scope.Version(), schema.MaxIDBytes))
	if isIncomplete(scope) {
		inner.Scope().Attributes().PutBool(attributeIncomplete, true)
	}
	kept := inner.Spans().AppendEmpty()
	span.CopyTo(kept)
	if whole := encodeLetter(one); whole != nil {
		return whole
	}
	inner.Scope().Attributes().PutBool(attributeIncomplete, true)
	kept.SetName(schema.Clip(kept.Name(), schema.MaxIDBytes))
	kept.Status().SetMessage(schema.Clip(kept.Status().Message(), maxError))
	kept.TraceState().FromRaw("")
	kept.Events().RemoveIf(func(ptrace.SpanEvent) bool { return true })
	kept.Links().RemoveIf(func(ptrace.SpanLink) bool { return true })
	room := maxLetterAttributes
	kept.Attributes().RemoveIf(func(name string, v pcommon.Value) bool {
		if room == 0 || len(name) > schema.MaxIDBytes || !fits(v, maxError) {
			return true
		}
		room--
		return false
	})
	return encodeLetter(one)
}

// maxLetterAttributes is how many attributes an incomplete letter has. With them it is always smaller than
// a trace may be.
const maxLetterAttributes = 64

// encodeLetter returns spans as OTLP in JSON, or nil if that is longer than a trace may be.
func encodeLetter(spans ptrace.Traces) []byte {
	if new(ptrace.ProtoMarshaler).TracesSize(spans) > schema.MaxTraceBytes {
		return nil
	}
	text, err := new(ptrace.JSONMarshaler).MarshalTraces(spans)
	if err != nil || len(text) > schema.MaxTraceBytes {
		return nil
	}
	return text
}

// isIncomplete reports whether the spans of a scope are those of an incomplete dead letter.
func isIncomplete(scope pcommon.InstrumentationScope) bool {
	v, ok := scope.Attributes().Get(attributeIncomplete)
	return ok && v.Bool()
}
