package reference

// EngineVersion is the version of this implementation of the SDK's behaviour.
const EngineVersion = "plumbline-reference/2"

// AlgorithmVersion is the SDK's own version of its algorithm.
const AlgorithmVersion = "1.2.0"
