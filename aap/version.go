package aap

// The origin of a verdict.
const (
	EngineVersion    = "plumbline-3" // changes whenever any verdict could change
	AlgorithmVersion = "1.2.0"       // of the published algorithm whose features are used
	ProfileSpec      = "spec"
)
