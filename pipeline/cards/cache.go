package cards

import "container/list"

// cache holds compiled cards up to a number of bytes. It evicts in order of arrival, but gives a
// card that was used since its last turn another turn. So a lookup only sets a flag.
type cache struct {
	limit, bytes int64
	queue        list.List // of *Card
}

// room reports whether there is room for a card of moderate size.
func (c *cache) room() bool { return c.bytes < c.limit }

// put adds a card that is not in the cache. It ignores a card that is larger than the whole
// cache.
func (c *cache) put(card *Card) {
	if card.bytes > c.limit {
		return
	}
	for c.bytes+card.bytes > c.limit {
		c.evict()
	}
	c.bytes += card.bytes
	c.queue.PushBack(card)
	card.Entry.used.Store(true) // it was requested, and will be used soon
	card.Entry.card.Store(card)
}

func (c *cache) evict() {
	for {
		oldest := c.queue.Front()
		card := oldest.Value.(*Card)
		if card.Entry.used.Swap(false) {
			c.queue.MoveToBack(oldest)
			continue
		}
		c.queue.Remove(oldest)
		card.Entry.card.Store(nil)
		c.bytes -= card.bytes
		return
	}
}
