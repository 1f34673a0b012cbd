//! What can be wrong with the description of XML messages (the operator's fault, or the import's) and
//! with a message that arrives.

use super::super::{TEXT_MEMBER, TYPE_MEMBER, XmlName};
use super::{CONTENT_DEPTH_MAX, DERIVATIONS_MAX};
use crate::xml::XmlError;

/// Why types or an operation cannot be used. Each text names what is meant and says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A type is named and is not there.
    #[error("{place}: there is no type `{name}`; add it to xml_types")]
    UnknownType {
        /// Where it is named.
        place: String,
        /// The type.
        name: XmlName,
    },
    /// What is to be the name of an element or an attribute is none.
    #[error("{place}: `{name}` is no name of XML")]
    Name {
        /// Where it stands.
        place: String,
        /// The name.
        name: XmlName,
    },
    /// What is to be a prefix is none.
    #[error("{place}: `{prefix}` is no prefix of XML")]
    Prefix {
        /// Where it stands.
        place: String,
        /// The prefix.
        prefix: String,
    },
    /// Two parts of one object have the same member.
    #[error("{place}: two parts are the member \"{member}\"; give one of them another name")]
    Duplicate {
        /// The type or the message.
        place: String,
        /// The member.
        member: String,
    },
    /// A member with no name.
    #[error("{place}: a part has an empty member name")]
    NoMember {
        /// The type or the message.
        place: String,
    },
    /// A type with text and elements.
    #[error(
        "type `{name}`: it has text and elements; let elements with mixed content hold `any` \
         instead"
    )]
    TextAndElements {
        /// The type.
        name: XmlName,
    },
    /// A type that is derived from itself.
    #[error(
        "type `{name}`: it is derived from itself, or through more than {DERIVATIONS_MAX} others"
    )]
    Derivation {
        /// The type.
        name: XmlName,
    },
    /// Groups in groups without end.
    #[error("{place}: its groups nest deeper than {CONTENT_DEPTH_MAX} levels")]
    TooDeep {
        /// The type or the message.
        place: String,
    },
    /// A list of lists.
    #[error("{place}: a list holds single values")]
    NestedList {
        /// Where it stands.
        place: String,
    },
    /// A fixed value for what has no text.
    #[error("{place}: only an element that holds a value can have a fixed one")]
    Fixed {
        /// Where it stands.
        place: String,
    },
    /// A fixed value that XML cannot hold.
    #[error("{place}: {error}")]
    FixedText {
        /// Where it stands.
        place: String,
        /// What is wrong with it.
        error: XmlError,
    },
    /// A wrapped body whose element is no object.
    #[error("{place}: the element of a wrapped body holds a type and stands once")]
    Wrapper {
        /// The message.
        place: String,
    },
    /// An action that cannot stand in a header.
    #[error("action: only printable ASCII characters, without quotes and backslashes")]
    Action,
    /// A name that the codec itself needs.
    #[error("{place}: the members \"{TEXT_MEMBER}\" and \"{TYPE_MEMBER}\" are taken here")]
    Reserved {
        /// The type or the message.
        place: String,
    },
}

/// Why a text is not the message that is described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is no XML, or more of it than is read.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// It is XML, and another document than is described.
    #[error("the XML document is another one than is described")]
    Other,
    /// It nests deeper than JSON may.
    #[error("the message is nested deeper than {} levels", super::DEPTH_MAX)]
    TooDeep,
    /// It repeats its namespaces until they are many times the text.
    #[error("the message comes to much more than its text")]
    TooLarge,
}
