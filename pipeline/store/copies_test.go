package store

import (
	"reflect"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// A copy that is confirmed twice is one row, the first one. Each destination has its own row.
func TestBundleCopies(t *testing.T) {
	s, _ := open(t)
	digest := schema.DigestOf([]byte("bundle"))
	first := BundleCopy{Destination: "https://s3.example.com/" + nasty, Path: "a/b.tar.gz", SHA256: digest, Bytes: 10, DeliveredAt: firstReceived}
	again, elsewhere, other := first, first, first
	again.DeliveredAt = firstReceived.Add(40 * 24 * time.Hour) // in another partition
	elsewhere.Destination = "nats:bundles"
	other.SHA256 = schema.DigestOf([]byte("another"))
	for _, copies := range [][]BundleCopy{{first, elsewhere}, {again, other}, nil} {
		if err := s.InsertBundleCopies(t.Context(), copies); err != nil {
			t.Fatal(err)
		}
	}
	first.Tenant = "default"
	elsewhere.Tenant = "default"
	got, err := s.BundleCopies(t.Context(), digest)
	if err != nil || !reflect.DeepEqual(got, []BundleCopy{first, elsewhere}) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, []BundleCopy{first, elsewhere})
	}
	if n := one[uint64](t, s, "SELECT count() FROM visible_bundle_copies"); n != 3 {
		t.Errorf("%d rows in view visible_bundle_copies", n)
	}
}
