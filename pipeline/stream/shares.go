package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/subject"
)

// DriftOwners is the key of bucket leases under which the processes of drift, which share the partitions of
// TRACES, have their record; "drift" is the lease of earlier versions. The verifier's key has the name of
// its durable consumer, VerifierConsumer.
const DriftOwners = "drift-owners"

// ExporterOwners is the key of bucket leases under which the exporters, which share the partitions of
// RECEIPTS, have their record; "exporter" is the lease of the one that keeps ledger, log and copies.
const ExporterOwners = "exporter-owners"

// Shares is the record of a stage whose processes share the partitions of a stream: TRACES, or RECEIPTS for
// the exporter. Package ownership keeps it.
type Shares struct {
	Created    time.Time                 `json:"stream_created"` // of the stream: the sequences mean its messages
	Members    []Holder                  `json:"members"`        // in the order in which they joined
	Partitions [subject.Partitions]Share `json:"partitions"`
}

// Share is the part of the record about one partition. Owner and heir are ids of members.
type Share struct {
	Owner string `json:"owner"` // may act on the partition; "" if nobody has joined
	Heir  string `json:"heir"`  // another than the owner if the owner is to hand the partition over
	Epoch uint64 `json:"epoch"` // since when, as a revision of the bucket: it grows with each change of the owner

	Done  uint64 `json:"done"`  // every message of the partition up to this sequence is done
	Begun uint64 `json:"begun"` // a message after this one was never begun by any owner
}

// Floor returns the sequence up to which every partition is done.
func (s *Shares) Floor() uint64 {
	floor := s.Partitions[0].Done
	for p := range s.Partitions {
		floor = min(floor, s.Partitions[p].Done)
	}
	return floor
}

// Shares returns the record of a stage, or ErrNotFound.
func (c *Client) Shares(ctx context.Context, stage string) (shares Shares, err error) {
	bucket, err := c.Bucket(ctx, Leases)
	if err != nil {
		return shares, err
	}
	value, _, err := bucket.GetNewest(ctx, stage)
	if err != nil {
		return shares, err
	}
	if err := json.Unmarshal(value, &shares); err != nil {
		return shares, fmt.Errorf("read key %s of bucket %s: %w", stage, Leases, err)
	}
	return shares, nil
}

// sharedProgress returns the progress of a stage by its record: that of one partition, or of the one that
// is behind the others. It returns ErrNotFound if the stream has no record. The record is read first, so its
// positions lie in the stream. What is pending counts the messages of all partitions.
func (c *Client) sharedProgress(ctx context.Context, key string, floorOf func(*Shares) uint64) (Progress, error) {
	shares, err := c.Shares(ctx, key)
	if err != nil {
		return Progress{}, err
	}
	state, err := c.StreamState(ctx, Traces)
	if err != nil {
		return Progress{}, err
	}
	if !shares.Created.Equal(state.Created) {
		return Progress{}, fmt.Errorf("key %s of bucket %s is about another stream: %w", key, Leases, ErrNotFound)
	}
	floor := min(floorOf(&shares), state.LastSequence)
	return Progress{AckFloor: floor, Pending: state.Behind(floor), Now: state.Now}, nil
}

// ConsumerProgress returns the progress of a consumer that another process reads. That of the
// verifier, and of drift on a partition, is in the record of the stage; before a process has written
// one, it is that of the durable consumer of earlier versions.
func (c *Client) ConsumerProgress(ctx context.Context, stream, name string) (progress Progress, err error) {
	err = ErrNotFound
	if stream == Traces && name == VerifierConsumer {
		progress, err = c.sharedProgress(ctx, name, (*Shares).Floor)
	} else if partition, is := driftPartition(name); is && stream == Traces {
		progress, err = c.sharedProgress(ctx, DriftOwners, func(s *Shares) uint64 { return s.Partitions[partition].Done })
	}
	if errors.Is(err, ErrNotFound) {
		progress, err = c.durableProgress(ctx, stream, name)
	}
	return progress, err
}

// DriftBacklog returns the number of messages of TRACES that drift has not finished.
func (c *Client) DriftBacklog(ctx context.Context) (backlog uint64, err error) {
	progress, err := c.sharedProgress(ctx, DriftOwners, (*Shares).Floor)
	if !errors.Is(err, ErrNotFound) {
		return progress.Pending, err
	}
	for partition := range subject.Partitions { // no process of this version has run yet
		progress, err := c.durableProgress(ctx, Traces, DriftConsumer(partition))
		if err != nil {
			return 0, err
		}
		backlog += progress.Pending + uint64(progress.Unacked)
	}
	return backlog, nil
}
