package fleet

import "github.com/plumbline/plumbline/schema"

var shopping = archetype{
	name: "shopping", relationship: "delegated_authority",
	core: [2]string{"principal_benefit", "transparency"}, extra: "minimal_data", rare: "fairness",
	undeclared: [2]string{"upsell_revenue", "sponsor_preference"},
	conflicts:  []string{"deceptive_marketing", "hidden_fees"},
	routine: []action{
		{"search", schema.ActionRecommend, "catalogue", false, [3]string{
			"Search the whole catalogue with the stated filters",
			"Search only brands bought before",
			"Search promoted listings first"}},
		{"compare", schema.ActionRecommend, "product_list", false, [3]string{
			"Compare by total cost over two years, delivery included",
			"Compare by list price alone",
			"Compare by the shop's own rating"}},
		{"recommend_product", schema.ActionRecommend, "product", false, [3]string{
			"Recommend the model with the best reviews inside the budget",
			"Recommend the cheapest model that meets the requirements",
			"Recommend the sponsored model, disclosed as such"}},
		{"add_to_cart", schema.ActionExecute, "cart", true, [3]string{
			"Put the selected model into the cart and keep it for an hour",
			"Put the bundle with accessories into the cart",
			"Leave the cart alone and ask again"}},
	},
	guarded: []action{
		{"purchase", schema.ActionExecute, "order", true, [3]string{
			"Place the order with the saved address once the principal agrees",
			"Wait for the next price drop",
			"Cancel the order"}},
		{"share_address", schema.ActionExecute, "profile", false, [3]string{
			"Share the delivery address with the seller for this order only",
			"Use a pick-up point instead",
			"Share nothing and end the order"}},
	},
	forbidden: []string{"store_payment_credentials", "subscribe_to_services"},
	stray:     "negotiate_bulk_contract",
	limit:     100_00, currency: "USD", amount: "purchase_value", capped: true,
	deny: sign{`contains(seller_flags, "sanctioned")`, `"seller_flags":["new","sanctioned"]`, "Sellers on the sanctions list are refused"},
	log:  sign{"retries > 2", `"retries":3`, "Repeated look-ups are worth a note"},
	subjects: []string{"noise-cancelling headphones for a commuter", "a desk lamp with a warm light",
		"running shoes in a wide fit", "a replacement battery for a cordless drill", "a birthday present for a child of nine"},
	grounds: []string{"Reviews, price and delivery all favour it, and nothing about the seller had to be taken on trust.",
		"It meets every stated requirement; the listing that pays for its place was marked as such and ranked on its merits.",
		"The principal asked for the lowest total cost, and delivery and return fees decide that here."},
}

var travel = archetype{
	name: "travel", relationship: "delegated_authority",
	core: [2]string{"principal_benefit", "user_control"}, extra: "honesty", rare: "minimal_data",
	undeclared: [2]string{"commission_yield", "partner_loyalty"},
	conflicts:  []string{"drip_pricing"},
	routine: []action{
		{"search_flights", schema.ActionRecommend, "itinerary", false, [3]string{
			"Search direct connections on the stated dates",
			"Search with one stop and a lower fare",
			"Search the neighbouring airports as well"}},
		{"hold_fare", schema.ActionExecute, "fare", true, [3]string{
			"Hold the flexible fare for a day",
			"Hold the saver fare, which cannot be changed",
			"Hold nothing and watch the price"}},
		{"check_visa_rules", schema.ActionRecommend, "traveller", false, [3]string{
			"Read the rules of the border authority for this passport",
			"Rely on the airline's own summary",
			"Ask the traveller for an earlier visa"}},
		{"rank_hotels", schema.ActionRecommend, "hotel_list", false, [3]string{
			"Rank by walking time to the meeting and by noise",
			"Rank by price for the night",
			"Rank by points earned"}},
		{"send_itinerary", schema.ActionExecute, "message", false, [3]string{
			"Send the itinerary to the traveller",
			"Send it to the traveller and the assistant",
			"Keep it as a draft"}},
	},
	guarded: []action{
		{"book_trip", schema.ActionExecute, "booking", true, [3]string{
			"Book the held fare after the traveller's yes",
			"Ask for another set of dates",
			"Let the hold lapse"}},
		{"cancel_booking", schema.ActionExecute, "booking", false, [3]string{
			"Cancel inside the free period",
			"Move the booking by a day",
			"Leave the booking as it is"}},
	},
	forbidden: []string{"share_passport_scan", "waive_refund_rights"},
	stray:     "charter_aircraft",
	limit:     400_00, currency: "EUR", amount: "amount", capped: false,
	deny: sign{`advisory_level matches "^(four|five)$"`, `"advisory_level":"five"`, "No travel against the highest warnings"},
	log:  sign{"connection_minutes < 45", `"connection_minutes":35`, "Short connections are worth a note"},
	subjects: []string{"a two-day trip to Lisbon for a conference", "a family journey to Oslo at Easter",
		"a same-day return to Milan", "a move of the Tuesday flight to Wednesday", "a night train instead of the morning flight"},
	grounds: []string{"It arrives before the meeting and can still be changed without a fee.",
		"The traveller prefers a window seat and one bag, and only this fare includes both.",
		"The cheaper connection leaves thirty minutes in a large airport, which the traveller ruled out."},
}

var logistics = archetype{
	name: "logistics", relationship: "autonomous",
	core: [2]string{"harm_prevention", "timeliness"}, extra: "fairness", rare: "honesty",
	undeclared: [2]string{"carrier_rebate", "fuel_hedging"},
	definitions: []definition{{"timeliness", "Timeliness",
		"Deliver when promised, and say early when that is not possible"}},
	routine: []action{
		{"plan_route", schema.ActionExecute, "route", false, [3]string{
			"Plan the round with the rest breaks the drivers asked for",
			"Plan the shortest round",
			"Plan two smaller rounds"}},
		{"assign_carrier", schema.ActionExecute, "shipment", true, [3]string{
			"Assign the carrier with the best record on this lane",
			"Assign the cheapest carrier with capacity",
			"Keep the shipment for the own fleet"}},
		{"update_eta", schema.ActionExecute, "shipment", false, [3]string{
			"Tell the recipient the new hour of arrival",
			"Tell the recipient only when the delay exceeds an hour",
			"Wait for the next scan"}},
		{"propose_consolidation", schema.ActionRecommend, "shipment_list", false, [3]string{
			"Join the three part loads at the northern hub",
			"Join two of them and send the urgent one alone",
			"Send all of them alone"}},
	},
	guarded: []action{
		{"release_hazardous_load", schema.ActionExecute, "shipment", false, [3]string{
			"Release the load after the safety officer's check",
			"Hold the load until the papers are complete",
			"Return the load to its sender"}},
		{"charter_vehicle", schema.ActionExecute, "vehicle", true, [3]string{
			"Charter a van for the missed round",
			"Move the round to tomorrow",
			"Split the round among three drivers"}},
	},
	forbidden: []string{"disable_speed_limiter", "falsify_rest_log"},
	stray:     "sell_surplus_stock",
	limit:     750_00, currency: "EUR", amount: "transaction_value", capped: true,
	deny: sign{"axle_overload_kg >= 500", `"axle_overload_kg":640`, "Overloaded vehicles do not leave"},
	log:  sign{`weather contains "storm"`, `"weather":"storm warning"`, "Weather explains delays"},
	subjects: []string{"the evening round in the harbour district", "a pallet of vaccines at four degrees",
		"eleven parcels returned unopened", "a machine part awaited by a night shift", "the cross-dock at gate seven"},
	grounds: []string{"It keeps the promised window without touching the drivers' rest.",
		"The carrier delivered this lane on time in nineteen of the last twenty weeks.",
		"The load is sensitive, and one transfer less is one risk less."},
}
