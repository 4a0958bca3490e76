package session

// Equal reports whether two acts are equal parts of a run.
func Equal(a, b Act) bool { return a.kind == b.kind && a.same == b.same }

// KindOf names what an act does, empty where it can be no part of a loop.
func KindOf(a Act) string {
	return [...]string{noLoop: "", bounded: "bounded", write: "write", transfer: "transfer", refusal: "refusal"}[a.kind]
}
