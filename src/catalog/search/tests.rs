//! Which tool is found by which words, and what hostile queries do.

use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::catalog::fixture;

/// Name, title, description, and fields with theirs.
type Written = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const TOOLS: [Written; 9] = [
    (
        "cancel_order",
        "Cancel an order",
        "Cancels an order that has not been shipped yet.",
        &[("order_id", "Number of the order")],
    ),
    (
        "create_invoice",
        "Create an invoice",
        "Creates an invoice for a customer and sends it by mail.",
        &[("customer_id", "Who pays"), ("lines[*].sku", "Article"), ("due_date", "When")],
    ),
    (
        "getCustomerByID",
        "Read a customer",
        "Reads one customer with all addresses.",
        &[("customer_id", "Number of the customer")],
    ),
    (
        "list_customers",
        "List customers",
        "Lists customers by name, page by page.",
        &[("page", "Page"), ("name", "Beginning of the name")],
    ),
    (
        "list_invoices",
        "List invoices",
        "Lists the invoices of a customer with their payment status.",
        &[("customer_id", "Number of the customer"), ("status", "open, paid or overdue")],
    ),
    (
        "list_orders",
        "List orders",
        "Lists orders, newest first.",
        &[("status", "open or shipped"), ("page", "Page")],
    ),
    (
        "refund_payment",
        "Refund a payment",
        "Gives money back for an invoice that was paid.",
        &[("payment_id", "Number of the payment"), ("reason", "Why")],
    ),
    ("search", "Search", "Searches orders, invoices and customers by words.", &[("words", "")]),
    ("sendeBestätigung", "Bestätigung senden", "Schickt eine Auftragsbestätigung.", &[]),
];

fn index() -> SearchIndex {
    SearchIndex::build(TOOLS.iter().map(|(name, title, description, fields)| SearchText {
        name,
        title: Some(title),
        description,
        toolset: "shop",
        fields: fields.to_vec(),
    }))
}

fn found(query: &str) -> Vec<&'static str> {
    index().search(query, 10).iter().map(|found| TOOLS[found.place].0).collect()
}

#[test]
fn the_tool_that_is_meant_comes_first() {
    for (query, expected) in [
        ("cancel order", "cancel_order"),
        ("cancel_order", "cancel_order"),
        ("CancelOrders", "cancel_order"),
        ("invoice create", "create_invoice"),
        ("create a new invoice for a customer", "create_invoice"),
        ("invoices", "list_invoices"),
        ("customer by id", "getCustomerByID"),
        ("customer address", "getCustomerByID"),
        ("overdue", "list_invoices"),
        ("give money back", "refund_payment"),
        ("why", "refund_payment"),
        ("sku", "create_invoice"),
        ("search", "search"),
        ("bestatigung", "sendeBestätigung"),
        ("BESTA\u{308}TIGUNG", "sendeBestätigung"),
        ("list cust", "list_customers"),
        ("refu", "refund_payment"),
    ] {
        let found = found(query);
        // "invoices" stands in two names alike; the longer description counts less.
        let is_first = found.first() == Some(&expected)
            || (query == "invoices" && found[..2].contains(&expected));
        assert!(is_first, "{query}: {found:?}");
    }
}

#[test]
fn more_of_the_words_come_before_fewer() {
    let found = found("list orders");
    assert_eq!(found[0], "list_orders");
    assert!(found.contains(&"cancel_order") && found.contains(&"list_invoices"), "{found:?}");
}

#[test]
fn only_the_last_word_may_be_a_beginning_and_only_where_it_is_open() {
    assert!(found("canc").contains(&"cancel_order"));
    assert_eq!(found("canc "), Vec::<&str>::new());
    assert_eq!(found("canc zzz"), Vec::<&str>::new());
    assert_eq!(found("c"), Vec::<&str>::new());
}

#[test]
fn ties_are_in_the_order_of_the_tools() {
    let text = |name| SearchText { name, description: "the same", ..SearchText::default() };
    let index = SearchIndex::build(["a_x", "b_x", "c_x"].map(text));
    let places: Vec<usize> = index.search("same", 3).iter().map(|found| found.place).collect();
    assert_eq!(places, [0, 1, 2]);
    let first: Vec<usize> = index.search("same x", 2).iter().map(|found| found.place).collect();
    assert_eq!(first, [0, 1]);
    assert_eq!(index.search("same", 0), []);
}

#[test]
fn nothing_is_found_of_nothing() {
    let empty = SearchIndex::build([]);
    assert!(empty.is_empty() && empty.search("order", 5).is_empty());
    for query in ["", " ", "___", "\0\0", "!?", "zzzzzz", "🙂"] {
        assert_eq!(found(query), Vec::<&str>::new(), "{query:?}");
    }
}

#[test]
fn fields_of_every_depth_are_found() {
    let mut schema = serde_json::json!({"type": "object", "properties": {
        "order": {"type": "object", "description": "What", "properties": {
            "lines": {"type": "array", "items": {"properties": {"sku": {"description": "Article"}}}}
        }},
        "page": {"type": "integer"},
    }});
    let fields = schema_fields(&schema);
    let expected = [("order", "What"), ("page", ""), ("lines", ""), ("sku", "Article")];
    assert_eq!(fields, expected);
    for _ in 0..600 {
        schema = serde_json::json!({"properties": {"inner": schema}});
    }
    assert_eq!(schema_fields(&schema).len(), FIELDS_MAX);
    for nothing in [serde_json::json!(true), serde_json::json!({"properties": []})] {
        assert!(schema_fields(&nothing).is_empty());
    }
}

#[test]
fn a_view_finds_the_tools_it_shows() {
    let tools = "
[[client_application.policy.rules]]
effect = 'deny'
tools = ['secret*']
[[tool]]
tenant = 'acme'
toolset = 'shop'
name = 'secret orders'
description = 'Lists orders nobody sees.'
method = 'GET'
path = '/secret'
[[tool]]
tenant = 'acme'
toolset = 'shop'
name = 'ship'
description = 'Ships orders.'
method = 'POST'
path = '/ship'
fields = [{ source_field_name = 'carrier', location = 'body', type = 'string' }]
";
    let view = fixture::view(&(fixture::api("shop") + tools));
    for query in ["orders", "carrier", "shop"] {
        let found = view.search().search(query, 5);
        let names: Vec<&str> =
            found.iter().map(|found| view.tools()[found.place].name.as_str()).collect();
        assert_eq!(names, ["ship"], "{query}");
    }
    assert!(std::ptr::eq(view.search(), view.search()), "made once");
}

#[test]
fn long_queries_are_cut() {
    let many = "order ".repeat(10_000);
    assert_eq!(found(&many).len(), found("order ").len());
    let different: String =
        (0..200).flat_map(|index| [format!("w{index}"), " ".to_owned()]).collect();
    assert_eq!(found(&format!("{different}order")), Vec::<&str>::new());
    let wide = "é".repeat(QUERY_BYTES_MAX);
    assert_eq!(found(&wide), Vec::<&str>::new());
}

/// Five thousand tools of about sixty words each, all of some vocabulary.
fn large() -> SearchIndex {
    let texts: Vec<(String, String, Vec<String>)> = (0..5_000_usize)
        .map(|tool| {
            let word = |at: usize| format!("w{:x}", (tool * 31 + at * at * 7) % (200 + at * 60));
            let name = format!("{}_{}_{tool:04}", word(1), word(2));
            let description =
                (3..43).flat_map(|at| ["the ".to_owned(), word(at), " ".to_owned()]).collect();
            (name, description, (43..60).map(word).collect())
        })
        .collect();
    SearchIndex::build(texts.iter().map(|(name, description, fields)| SearchText {
        name,
        title: None,
        description,
        toolset: "large",
        fields: fields.iter().map(|field| (field.as_str(), "the value")).collect(),
    }))
}

#[test]
fn the_largest_catalog_is_searched_at_once() {
    let built = Instant::now();
    let index = large();
    let built = built.elapsed();
    let times = 20;
    let timed = |query: &str| {
        let started = Instant::now();
        for _ in 0..times {
            std::hint::black_box(index.search(query, 20));
        }
        started.elapsed() / times
    };
    let (few, all) = (timed("w5 w11 w1f"), timed("the value large w1 w2 w3 w4 w5 w6 w7 w8 w"));
    println!("built in {built:?}, {} bytes; few words {few:?}, all {all:?}", index.bytes());
    assert!(index.bytes() < 3_000_000, "{}", index.bytes());
    // Without optimisation, on a busy machine.
    assert!(few.as_millis() < 50 && all.as_millis() < 200, "{few:?} {all:?}");
}

proptest! {
    #[test]
    fn any_query_is_answered_in_order(query in any::<String>(), limit in 0_usize..200) {
        let found = index().search(&query, limit);
        prop_assert!(found.len() <= limit.min(FOUND_MAX));
        prop_assert!(found.is_sorted_by(|one, other| (other.score, one.place) < (one.score, other.place)));
    }

    #[test]
    fn a_tool_is_found_by_its_name(
        names in prop::collection::btree_set("[a-z]{3,9}(_[a-z]{3,9}){1,3}", 1..40),
    ) {
        let text = |name| SearchText { name, description: "does things", ..SearchText::default() };
        let index = SearchIndex::build(names.iter().map(|name| text(name.as_str())));
        for (place, name) in names.iter().enumerate() {
            let first = index.search(name, 1)[0].place;
            // Two names may be the same words: `as_s` and `a_ss` are not, `cats_x` and `cat_x` are.
            let same = names.iter().nth(first).unwrap();
            prop_assert!(first == place || index.names[first] == index.names[place], "{name} {same}");
        }
    }

    #[test]
    fn any_texts_can_be_indexed(texts in prop::collection::vec(any::<String>(), 0..20)) {
        let index = SearchIndex::build(texts.iter().map(|text| SearchText {
            name: text,
            description: text,
            fields: vec![(text, text)],
            ..SearchText::default()
        }));
        prop_assert_eq!(index.len(), texts.len());
        for text in &texts {
            let _ = index.search(text, 3);
        }
    }
}
