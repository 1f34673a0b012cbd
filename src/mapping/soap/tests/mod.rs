//! Messages of services, byte for byte, and what becomes of anything at all.

mod answers;
mod envelopes;
mod faults;
mod plans;
mod properties;

use std::sync::Arc;

use super::*;
use crate::json::guard;
use crate::mapping::xml::{Attachments, DEPTH_MAX, Message, TypePlans, Unreadable};
use crate::mapping::{
    SoapBody, SoapMessage, SoapOperation, SoapVersion, XmlAttribute, XmlContent, XmlElement,
    XmlGroup, XmlName, XmlParticle, XmlType, XmlTypes, XmlValue,
};

const SHOP: &str = "urn:shop";

fn name(text: &str) -> XmlName {
    XmlName::parse(text).unwrap()
}

fn shop(local: &str) -> XmlName {
    XmlName::new(SHOP, local)
}

/// An element of the shop's namespace that holds a text.
fn element(local: &str) -> XmlElement {
    XmlElement {
        name: shop(local),
        prefix: None,
        member: local.into(),
        holds: XmlContent::Value(XmlValue::String),
        repeats: false,
        required: false,
        nillable: false,
        fixed: None,
    }
}

fn holding(local: &str, value: XmlValue) -> XmlElement {
    XmlElement { holds: XmlContent::Value(value), ..element(local) }
}

fn typed(local: &str, held: &str) -> XmlElement {
    XmlElement { holds: XmlContent::Type(shop(held)), ..element(local) }
}

fn many(element: XmlElement) -> XmlElement {
    XmlElement { repeats: true, ..element }
}

fn nillable(element: XmlElement) -> XmlElement {
    XmlElement { nillable: true, ..element }
}

fn required(element: XmlElement) -> XmlElement {
    XmlElement { required: true, ..element }
}

fn one(element: XmlElement) -> XmlParticle {
    XmlParticle::Element(element)
}

fn group(repeats: bool, content: Vec<XmlParticle>) -> XmlGroup {
    XmlGroup { repeats, required: false, content }
}

fn attribute(text: &str, member: &str, value: XmlValue) -> XmlAttribute {
    XmlAttribute { name: name(text), prefix: None, member: member.into(), value, fixed: None }
}

fn content(content: Vec<XmlParticle>) -> XmlType {
    XmlType { content, ..XmlType::default() }
}

fn types(all: Vec<(&str, XmlType)>) -> XmlTypes {
    XmlTypes(all.into_iter().map(|(local, declared)| (shop(local), declared)).collect())
}

fn message(body: SoapBody) -> SoapMessage {
    SoapMessage { body, headers: Vec::new() }
}

/// An operation that sends and receives the same message.
fn operation(body: SoapBody) -> SoapOperation {
    SoapOperation {
        version: SoapVersion::V1_1,
        action: "urn:shop#do".to_owned(),
        input: message(body.clone()),
        output: Some(message(body)),
        faults: Vec::new(),
    }
}

fn compiled(types: &XmlTypes, operation: &SoapOperation) -> SoapPlan {
    let types = Arc::new(TypePlans::compile(types).unwrap());
    SoapPlan::compile(&types, operation).unwrap()
}

/// A plan whose wrapped message `order` has this type.
fn ordering(order: XmlType, others: Vec<(&str, XmlType)>) -> SoapPlan {
    let mut all = vec![("Order", order)];
    all.extend(others);
    compiled(&types(all), &operation(SoapBody::Wrapped(typed("order", "Order"))))
}

fn written(plan: &SoapPlan, json: &str) -> String {
    let checked = guard(json.as_bytes()).unwrap();
    String::from_utf8(plan.write(checked.root()).unwrap()).unwrap()
}

/// What stands within the body.
fn body(plan: &SoapPlan, json: &str) -> String {
    let text = written(plan, json);
    let (_, body) = text.split_once("<soap:Body>").unwrap();
    body.strip_suffix("</soap:Body></soap:Envelope>").unwrap().to_owned()
}

/// What stands within the element `order`.
fn order(plan: &SoapPlan, json: &str) -> String {
    let body = body(plan, json);
    match body.strip_prefix("<n1:order>") {
        Some(rest) => rest.strip_suffix("</n1:order>").unwrap().to_owned(),
        None => body,
    }
}

fn refused(plan: &SoapPlan, json: &str) -> String {
    let checked = guard(json.as_bytes()).unwrap();
    plan.write(checked.root()).unwrap_err().to_string()
}

/// An envelope of version 1.1 with this body. Prefixes are not those that are written.
fn enveloped(body: &str) -> String {
    format!(
        "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/' xmlns:s='urn:shop' \
         xmlns:i='http://www.w3.org/2001/XMLSchema-instance'><e:Header/><e:Body>{body}</e:Body>\
         </e:Envelope>"
    )
}

fn read_with(plan: &SoapPlan, text: &str, attachments: &Attachments<'_>) -> (String, u64) {
    match plan.read(text, attachments).unwrap() {
        Answer::Message(Message { json, dropped }) => {
            assert!(guard(&json).is_ok(), "{}", String::from_utf8_lossy(&json));
            (String::from_utf8(json).unwrap(), dropped)
        }
        Answer::Fault(fault) => panic!("{fault:?}"),
    }
}

fn read(plan: &SoapPlan, body: &str) -> String {
    read_with(plan, &enveloped(body), &Attachments::default()).0
}

/// What is read of an element `order` with this content.
fn read_order(plan: &SoapPlan, content: &str) -> String {
    read(plan, &format!("<s:order>{content}</s:order>"))
}
