package cards

import (
	"container/list"
	"crypto/ed25519"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

// cache holds compiled cards up to a number of bytes. It evicts in order of arrival, but gives a
// card that was used since its last turn another turn. So a lookup only sets a flag. Cards with the
// same policy share their rules, which are most of a card's memory.
type cache struct {
	limit, bytes int64
	queue        list.List                 // of *Card
	rules        map[schema.Digest]*shared // of the cards in the queue, by policy
}

// shared are the rules of one policy.
type shared struct {
	*aap.Rules
	bytes int64 // memory that they take
	cards int   // in the cache
}

// room reports whether there is room for a card of moderate size.
func (c *cache) room() bool { return c.bytes < c.limit }

// put adds a card that is not in the cache, and that nobody else knows yet. It ignores a card that
// is larger than the whole cache.
func (c *cache) put(card *Card) {
	policy := card.Card.Policy
	own := c.rules[policy]
	if own == nil {
		own = &shared{Rules: card.Rules, bytes: weighRules(card.Compiled)}
	}
	if card.bytes+own.bytes > c.limit {
		return
	}
	if own.cards == 0 {
		c.rules[policy] = own
		c.bytes += own.bytes
	}
	if card.Rules != own.Rules { // another goroutine compiled them at the same time
		card.Compiled = own.For(card.Card)
	}
	own.cards++
	for c.bytes+card.bytes > c.limit {
		c.evict(c.queue.Front())
	}
	c.bytes += card.bytes
	c.queue.PushBack(card)
	card.Entry.used.Store(true) // it was requested, and will be used soon
	card.Entry.card.Store(card)
}

// evict removes a card unless it was used since its last turn.
func (c *cache) evict(place *list.Element) {
	card := place.Value.(*Card)
	if card.Entry.used.Swap(false) {
		c.queue.MoveToBack(place)
		return
	}
	c.queue.Remove(place)
	card.Entry.card.Store(nil)
	c.bytes -= card.bytes
	own := c.rules[card.Card.Policy]
	if own.cards--; own.cards == 0 {
		delete(c.rules, card.Card.Policy)
		c.bytes -= own.bytes
	}
}

// weigh returns the approximate memory of a compiled card in bytes, without its rules.
func weigh(compiled *aap.Compiled) int64 {
	card := compiled.Card
	bytes := cap(card.Raw) + cap(card.Extensions)*int(unsafe.Sizeof(schema.Member{})) + cap(card.Keys)*int(unsafe.Sizeof(schema.Key{})+ed25519.PublicKeySize)
	if slices.Contains(card.Raw, '\\') { // then strings may be copies without the escapes
		bytes += len(card.CardID) + len(card.AgentID) + len(card.Principal.Identifier) + len(card.Principal.EscalationContact) +
			len(card.Audit.StorageLocation) + len(card.Audit.QueryEndpoint)
		for i := range card.Extensions {
			bytes += len(card.Extensions[i].Name)
		}
	}
	return (cardBytes + int64(bytes)) * 9 / 8 // for rounding by the allocator
}

// cardBytes is the size of a Card, what each one refers to, and its place in the cache.
const cardBytes = int64(unsafe.Sizeof(Card{})+unsafe.Sizeof(aap.Compiled{})+unsafe.Sizeof(schema.Card{})+unsafe.Sizeof(schema.Signature{})) + 64

// weighRules returns the approximate memory of a card's rules in bytes. Those of cards of the same
// length differ by a factor of thirty, because a short condition can compile to a large structure.
// So weighRules counts what they refer to.
func weighRules(compiled *aap.Compiled) int64 {
	raw := compiled.Card.Raw
	s := scale{raw: raw, seen: map[unsafe.Pointer]bool{}}
	bytes := s.beyond(reflect.ValueOf(compiled.Rules)) + int64(cap(raw)) + sharedBytes
	return bytes + bytes/8 // for rounding by the allocator
}

// sharedBytes is the size of a shared and its place in a map.
const sharedBytes = int64(unsafe.Sizeof(shared{})+unsafe.Sizeof(schema.Digest{})) + placeBytes

// scale counts each piece of memory once.
type scale struct {
	raw  []byte // of the card; its strings alias it
	seen map[unsafe.Pointer]bool
}

var location = reflect.TypeFor[*time.Location]() // shared by all times

// beyond counts what a value refers to, without the value itself.
func (s *scale) beyond(v reflect.Value) (bytes int64) {
	switch v.Kind() {
	case reflect.String:
		return s.text(v.String())
	case reflect.Pointer:
		if v.Type() == location || v.IsNil() || s.counted(v.UnsafePointer()) {
			return 0
		}
		return int64(v.Type().Elem().Size()) + s.beyond(v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return int64(v.Elem().Type().Size()) + s.beyond(v.Elem())
	case reflect.Slice:
		return s.slice(v)
	case reflect.Array:
		for i := range v.Len() {
			bytes += s.beyond(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			bytes += s.beyond(v.Field(i))
		}
	case reflect.Map:
		return s.table(v)
	}
	return bytes
}

// counted reports whether the memory at p was counted before.
func (s *scale) counted(p unsafe.Pointer) bool {
	if s.seen[p] {
		return true
	}
	s.seen[p] = true
	return false
}

func (s *scale) text(text string) int64 {
	begin := uintptr(unsafe.Pointer(unsafe.StringData(text)))
	raw := uintptr(unsafe.Pointer(unsafe.SliceData(s.raw)))
	if within := begin >= raw && begin < raw+uintptr(len(s.raw)); within || text == "" || s.counted(unsafe.Pointer(unsafe.StringData(text))) {
		return 0
	}
	return int64(len(text))
}

func (s *scale) slice(v reflect.Value) int64 {
	elem := v.Type().Elem()
	if v.Cap() == 0 || s.counted(v.UnsafePointer()) {
		return 0
	}
	bytes := int64(v.Cap()) * int64(elem.Size())
	if elem.Kind() <= reflect.Complex128 {
		return bytes
	}
	for i := range v.Len() {
		bytes += s.beyond(v.Index(i))
	}
	return bytes
}

// table returns the memory of a map. A map consists of groups of eight places, each with a
// control byte. It grows when seven of eight are in use.
func (s *scale) table(v reflect.Value) int64 {
	const header, group = 48, 8
	if v.IsNil() {
		return 0
	}
	place := int64(v.Type().Key().Size()+v.Type().Elem().Size()) + 1
	places := int64(group)
	for int64(v.Len()) > places*7/8 && v.Len() > group {
		places *= 2
	}
	bytes := header + places*place
	for each := v.MapRange(); each.Next(); {
		bytes += s.beyond(each.Key()) + s.beyond(each.Value())
	}
	return bytes
}

// Expose registers the metrics of the registry.
func (r *Registry) Expose(metrics prometheus.Registerer) {
	metrics.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "plumbline_card_index_bytes", Help: "Memory used by the index of cards and revocations; ingest refuses new cards at max_card_index_bytes.",
		}, func() float64 { index, _ := r.Bytes(); return float64(index) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "plumbline_card_cache_bytes", Help: "Memory used by compiled cards, at most card_cache_bytes.",
		}, func() float64 { _, cached := r.Bytes(); return float64(cached) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "plumbline_card_fetches_total", Help: "Cards read from the broker because they were not in the cache.",
		}, func() float64 { return float64(r.fetches.Load()) }),
	)
}

// Bytes returns the memory in use: by the index of cards and revocations, which grows with them,
// and by compiled cards, which is limited.
func (r *Registry) Bytes() (index, cached int64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.indexBytes + placeBytes*int64(len(r.known)), r.cache.bytes
}
