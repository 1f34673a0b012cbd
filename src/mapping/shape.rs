//! The tree that the rules of one mapping span, with names on both sides. Schemas, translations
//! and repairs are all made from it.
//!
//! Its depth is bounded by `SEGMENTS_MAX`, so walking it may recurse.

use std::collections::HashSet;

use serde_json::Value;

use super::digits;
use super::discovery::SCHEMA_DISCOVERY;
use super::keys::{self, Wish};
use super::kinds::Kinds;
use super::path::{FieldPath, Segment};
use super::raw_schema::RawSchema;
use super::validator::kind_of;
use super::{FieldRule, FieldType, Location, MappingError, MappingErrors};

/// How many field rules one mapping may have.
pub const RULES_MAX: usize = 512;
/// What an array without a name of its own is called among the arguments.
const ROOT_ARRAY_NAME: &str = "items";
/// The same for a whole body that is no array.
const ROOT_VALUE_NAME: &str = "body";

/// One field, object or array of the mapping.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) source: Box<str>,
    pub(super) exposed: Box<str>,
    /// The rule that describes this node; items of an array carry the rule of their array.
    pub(super) rule: Option<usize>,
    pub(super) field_type: FieldType,
    pub(super) content: Content,
    /// In place of what the rule and the content say; the content has only other names.
    pub(super) schema: Option<Box<Value>>,
}

#[derive(Debug)]
pub(super) enum Content {
    /// No rule looks into the value.
    Leaf,
    Object(Vec<Node>),
    Array(Box<Node>),
}

/// A field at the root of the arguments.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) node: Node,
    pub(super) location: Location,
    /// The value is the whole body and not a member of it.
    pub(super) whole: bool,
}

impl Node {
    pub(super) fn new(source: &str) -> Self {
        Self {
            source: source.into(),
            exposed: source.into(),
            rule: None,
            field_type: FieldType::String,
            content: Content::Leaf,
            schema: None,
        }
    }

    fn member(&mut self, name: &str) -> Option<&mut Self> {
        if matches!(self.content, Content::Leaf) {
            self.content = Content::Object(Vec::new());
        }
        let Content::Object(members) = &mut self.content else { return None };
        let index = members.iter().position(|member| &*member.source == name);
        let index = index.unwrap_or_else(|| {
            members.push(Self::new(name));
            members.len() - 1
        });
        members.get_mut(index)
    }

    fn item(&mut self) -> Option<&mut Self> {
        if matches!(self.content, Content::Leaf) {
            self.content = Content::Array(Box::new(Self::new("")));
        }
        let Content::Array(item) = &mut self.content else { return None };
        Some(item)
    }

    /// Whether the client does not see the node: a constant, or nothing but constants.
    pub(super) fn is_hidden(&self, rules: &[FieldRule]) -> bool {
        match (self.rule.and_then(|index| rules.get(index)), &self.content) {
            (Some(rule), _) => rule.constant.is_some(),
            (None, Content::Object(members)) => members.iter().all(|node| node.is_hidden(rules)),
            (None, _) => false,
        }
    }

    /// Whether a call must have the node.
    pub(super) fn is_required(&self, rules: &[FieldRule]) -> bool {
        if self.is_hidden(rules) {
            return false;
        }
        match (self.rule.and_then(|index| rules.get(index)), &self.content) {
            (Some(rule), _) => rule.required || rule.location == Location::Path,
            (None, Content::Object(members)) => members.iter().any(|node| node.is_required(rules)),
            (None, _) => false,
        }
    }
}

/// The fields at the root of the arguments, under their final names.
///
/// With errors, what is given is what could be made in spite of them, so that more can be found.
pub(super) fn request_fields(rules: &[FieldRule], errors: &mut MappingErrors) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut taken = HashSet::new();
    for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| is_parameter(rule)) {
        let Some(node) = errors.note(parameter(index, rule)) else { continue };
        // Header names are the same in any case.
        let wire = match rule.location {
            Location::Header => node.source.to_ascii_lowercase(),
            _ => node.source.to_string(),
        };
        if !taken.insert((rule.location, wire)) {
            errors.note::<()>(Err(MappingError::Duplicate { field: rule.name() }));
            continue;
        }
        fields.push(Field { node, location: rule.location, whole: false });
    }
    if rules.iter().any(|rule| !is_parameter(rule)) {
        let root = body(rules, errors);
        match root.content {
            Content::Object(members) if root.rule.is_none() => {
                fields.extend(members.into_iter().map(|node| {
                    let location = Location::Body;
                    Field { node, location, whole: false }
                }));
            }
            _ => fields.push(Field { node: root, location: Location::Body, whole: true }),
        }
    }
    let visible = fields.iter_mut().filter(|field| !field.node.is_hidden(rules));
    let visible = visible.map(|field| (&mut field.node, field.location)).collect();
    name_apart(visible, Some(SCHEMA_DISCOVERY), rules, errors);
    fields
}

fn is_parameter(rule: &FieldRule) -> bool {
    rule.location != Location::Body
}

fn parameter(index: usize, rule: &FieldRule) -> Result<Node, MappingError> {
    let wire = rule.source_field_name.strip_suffix("[*]");
    let mut node = Node::new(wire.unwrap_or(&rule.source_field_name));
    if node.source.is_empty() {
        return Err(MappingError::NoName { field: rule.name() });
    }
    if wire.is_some() {
        node.item();
    }
    finish_one(&mut node, Some(rule))?;
    set_rule(&mut node, index);
    if [rule.field_type, rule.array_item_type].contains(&Some(FieldType::File)) {
        let problem = "a file can only go into a body; set location to \"body\", or change type";
        return Err(MappingError::Rule { field: rule.name(), problem });
    }
    Ok(node)
}

fn set_rule(node: &mut Node, index: usize) {
    node.rule = Some(index);
    if let Content::Array(item) = &mut node.content {
        set_rule(item, index);
    }
}

/// The tree of all body rules, from the root of the document.
pub(super) fn body(rules: &[FieldRule], errors: &mut MappingErrors) -> Node {
    let mut root = Node::new("");
    for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| !is_parameter(rule)) {
        errors.note(insert(&mut root, index, rule));
    }
    let rule = root.rule;
    finish(&mut root, rules, rule, errors);
    if root.exposed.is_empty() {
        let array = matches!(root.content, Content::Array(_));
        root.exposed = if array { ROOT_ARRAY_NAME } else { ROOT_VALUE_NAME }.into();
    }
    root
}

fn insert(root: &mut Node, index: usize, rule: &FieldRule) -> Result<(), MappingError> {
    let path = FieldPath::parse(&rule.source_field_name)
        .map_err(|error| MappingError::Path { field: rule.name(), error })?;
    let segments = path.segments();
    // `tags[*]` describes the array `tags`, not each of its items.
    let is_name = |segment: &Segment| matches!(segment, Segment::Name(_));
    let described = segments.iter().rposition(is_name).map_or(0, |last| last + 1);
    let mut node = root;
    for (depth, segment) in segments.iter().enumerate() {
        if depth == described {
            describe(node, index, rule)?;
        }
        node = match segment {
            Segment::Name(name) => node.member(name),
            Segment::Each => node.item(),
        }
        .ok_or_else(|| MappingError::Conflict { field: rule.name() })?;
    }
    if described == segments.len() {
        describe(node, index, rule)?;
    }
    Ok(())
}

fn describe(node: &mut Node, index: usize, rule: &FieldRule) -> Result<(), MappingError> {
    if node.rule.replace(index).is_some() {
        return Err(MappingError::Duplicate { field: rule.name() });
    }
    if let Some(name) = &rule.exposed_field_name {
        node.exposed = name.as_str().into();
    }
    Ok(())
}

/// Settles types from the root down and checks each rule against what the others say. What stands
/// below a rule that does not fit is not judged.
fn finish(node: &mut Node, rules: &[FieldRule], owner: Option<usize>, errors: &mut MappingErrors) {
    let rule = owner.and_then(|index| rules.get(index));
    if errors.note(finish_one(node, rule)).is_none() {
        return;
    }
    match &mut node.content {
        Content::Leaf => {}
        Content::Array(item) => finish_items(item, rules, owner, errors),
        Content::Object(members) => finish_members(members, rules, errors),
    }
}

/// The node itself, and the items of an array that no other rule looks into.
fn finish_one(node: &mut Node, rule: Option<&FieldRule>) -> Result<(), MappingError> {
    if let Some(rule) = rule {
        if let Some(schema) = &rule.schema {
            return finish_raw(node, rule, schema);
        }
        if matches!(node.content, Content::Leaf) && rule.field_type == Some(FieldType::Array) {
            node.item();
        }
        check_rule(rule, node)?;
        if let Some(name) = &rule.exposed_field_name {
            node.exposed = name.as_str().into();
        }
    }
    node.field_type = match &mut node.content {
        Content::Leaf => rule.and_then(|rule| rule.field_type).unwrap_or(FieldType::String),
        Content::Array(item) => {
            finish_item_types(item, rule)?;
            FieldType::Array
        }
        Content::Object(_) => FieldType::Object,
    };
    check_values(rule, node)
}

/// A field with a raw schema, or an array of what has one.
fn finish_raw(node: &mut Node, rule: &FieldRule, schema: &Value) -> Result<(), MappingError> {
    if has_members(node) {
        return Err(MappingError::SchemaWithMembers { field: rule.name() });
    }
    check_rule(rule, node)?;
    if let Some(name) = &rule.exposed_field_name {
        node.exposed = name.as_str().into();
    }
    let raw = RawSchema::compile(rule, schema)?;
    settle_raw(node, raw);
    Ok(())
}

/// The schema is that of the innermost items, as many arrays as the path goes through.
fn settle_raw(node: &mut Node, raw: RawSchema) {
    if let Content::Array(item) = &mut node.content {
        node.field_type = FieldType::Array;
        return settle_raw(item, raw);
    }
    node.field_type = Kinds::of_schema(&raw.schema).field_type().unwrap_or(FieldType::String);
    node.content = raw.content;
    node.schema = Some(Box::new(raw.schema));
}

fn finish_members(members: &mut [Node], rules: &[FieldRule], errors: &mut MappingErrors) {
    for member in members.iter_mut() {
        let rule = member.rule;
        finish(member, rules, rule, errors);
    }
    let visible = members.iter_mut().filter(|member| !member.is_hidden(rules));
    name_apart(visible.map(|node| (node, Location::Body)).collect(), None, rules, errors);
}

/// What arrays hold, down to what is no array.
fn finish_item_types(item: &mut Node, rule: Option<&FieldRule>) -> Result<(), MappingError> {
    let declared = rule.and_then(|rule| rule.array_item_type);
    match &mut item.content {
        Content::Array(inner) => {
            item.field_type = FieldType::Array;
            finish_item_types(inner, rule)
        }
        Content::Object(_) => {
            item.field_type = FieldType::Object;
            match (rule, declared) {
                (Some(rule), Some(declared)) if declared != FieldType::Object => {
                    Err(MappingError::Conflict { field: rule.name() })
                }
                _ => Ok(()),
            }
        }
        Content::Leaf => {
            // `tags[*]` of type integer is an array of integers.
            let own = rule.and_then(|rule| rule.field_type).filter(|own| own.is_one());
            item.field_type = declared.or(own).unwrap_or(FieldType::String);
            if item.field_type == FieldType::Array {
                // Nothing says what the inner arrays hold, so it is the default.
                item.content = Content::Array(Box::new(Node::new("")));
            }
            Ok(())
        }
    }
}

fn finish_items(
    item: &mut Node,
    rules: &[FieldRule],
    owner: Option<usize>,
    errors: &mut MappingErrors,
) {
    item.rule = owner;
    match &mut item.content {
        Content::Leaf => {}
        Content::Array(inner) => finish_items(inner, rules, owner, errors),
        Content::Object(members) => finish_members(members, rules, errors),
    }
}

/// What a rule says of itself, against the shape that all rules give its node.
fn check_rule(rule: &FieldRule, node: &Node) -> Result<(), MappingError> {
    let field = || rule.name();
    let items = rule.source_field_name.ends_with("[*]");
    let agrees = match (&node.content, rule.field_type) {
        (Content::Leaf, declared) => declared != Some(FieldType::Array),
        (_, None) => true,
        (Content::Object(_), Some(declared)) => declared == FieldType::Object,
        (Content::Array(item), Some(declared)) => {
            let of_items = items && declared.is_one() && matches!(item.content, Content::Leaf);
            declared == FieldType::Array || of_items
        }
    };
    if !agrees {
        return Err(MappingError::Conflict { field: field() });
    }
    if rule.array_item_type.is_some() && !matches!(node.content, Content::Array(_)) {
        return Err(MappingError::NoArray { field: field() });
    }
    if rule.send_default && rule.default.is_none() {
        return Err(MappingError::NoDefault { field: field() });
    }
    let fixed = rule.constant.is_some() || rule.send_default;
    if fixed && has_members(node) {
        return Err(MappingError::FixedWithMembers { field: field() });
    }
    match rule.exposed_field_name.as_deref() {
        Some(name) if name.is_empty() || name.chars().any(char::is_control) => {
            Err(MappingError::NoName { field: field() })
        }
        Some(name) if name.contains(['.', '[', ']']) => {
            Err(MappingError::NameIsPath { field: field() })
        }
        _ => Ok(()),
    }
}

fn has_members(node: &Node) -> bool {
    match &node.content {
        Content::Leaf => false,
        Content::Object(_) => true,
        Content::Array(item) => has_members(item),
    }
}

/// Constants, defaults and allowed values must be of the type of their field.
fn check_values(rule: Option<&FieldRule>, node: &Node) -> Result<(), MappingError> {
    let Some(rule) = rule else { return Ok(()) };
    let mut innermost = node;
    while let Content::Array(item) = &innermost.content {
        innermost = item;
    }
    let whole = [("constant", &rule.constant), ("default", &rule.default)];
    let whole = whole.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?, node)));
    let allowed = rule.allowed.iter().flatten().map(|value| ("enum", value, innermost));
    if rule.as_string && digits::pattern(innermost.field_type).is_none() {
        return Err(MappingError::NoNumber { field: rule.name() });
    }
    let is_fixed = rule.constant.is_some() || rule.default.is_some() || rule.allowed.is_some();
    if innermost.field_type == FieldType::File && is_fixed {
        let problem = "a file has no constant, default or enum; remove it";
        return Err(MappingError::Rule { field: rule.name(), problem });
    }
    for (key, value, node) in whole.chain(allowed) {
        let is_null = value.is_null() && (key == "constant" || rule.nullable);
        let is_text = rule.as_string
            && node.field_type.is_scalar()
            && value.as_str().is_some_and(digits::is_number);
        if !is_null && !is_text && !node.field_type.fits(kind_of(value)) {
            let expected = node.field_type.as_str();
            return Err(MappingError::Value { field: rule.name(), key, expected });
        }
    }
    let objects = innermost.field_type == FieldType::Object;
    match &rule.additional_properties {
        Some(_) if !objects => Err(MappingError::NoObject { field: rule.name() }),
        Some(value) if !value.is_boolean() && !value.is_object() => {
            let expected = "boolean or schema";
            Err(MappingError::Value { field: rule.name(), key: "additional_properties", expected })
        }
        _ => Ok(()),
    }
}

/// Gives the members of one object their keys. Two that are said to have one name are an error;
/// whatever else collides is told apart, see [`keys::assign`].
fn name_apart(
    mut members: Vec<(&mut Node, Location)>,
    reserved: Option<&str>,
    rules: &[FieldRule],
    errors: &mut MappingErrors,
) {
    let is_said = |node: &Node| {
        let rule = node.rule.and_then(|index| rules.get(index));
        rule.is_some_and(|rule| rule.exposed_field_name.is_some())
    };
    let mut wishes = Vec::with_capacity(members.len());
    for (node, location) in &members {
        let (name, source) = (&*node.exposed, &*node.source);
        wishes.push(Wish { name, is_said: is_said(node), location: *location, source });
    }
    let mut said = HashSet::new();
    for (wish, (node, _)) in wishes.iter().zip(&members).filter(|(wish, _)| wish.is_said) {
        if !said.insert(wish.name) {
            errors.note::<()>(Err(same_name(node, rules)));
        }
    }
    let keys = keys::assign(&wishes, reserved);
    for ((node, _), key) in members.iter_mut().zip(keys) {
        node.exposed = key;
    }
}

fn same_name(node: &Node, rules: &[FieldRule]) -> MappingError {
    let rule = node.rule.and_then(|index| rules.get(index));
    let field = rule.map_or_else(|| format!("{} (body)", node.source), FieldRule::name);
    MappingError::SameName { field, name: node.exposed.to_string() }
}
