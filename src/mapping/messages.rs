//! Messages of tools whose API speaks XML.

use std::sync::Arc;

use super::soap::SoapPlan;
use super::xml::{BodiesPlan, TypePlans};
use super::{InvalidArguments, OutgoingRequest};

/// How what a tool sends is written, and what comes back is read, where it is no JSON.
#[derive(Debug)]
pub enum Messages {
    /// The operation of a SOAP service.
    Soap(Box<SoapPlan>),
    /// Bodies of XML.
    Xml(Box<BodiesPlan>),
}

impl Messages {
    /// The types they were compiled with.
    pub fn types(&self) -> &Arc<TypePlans> {
        match self {
            Self::Soap(plan) => plan.types(),
            Self::Xml(plan) => plan.types(),
        }
    }

    /// The operation, where it is one of a SOAP service.
    pub fn soap(&self) -> Option<&SoapPlan> {
        match self {
            Self::Soap(plan) => Some(plan),
            Self::Xml(_) => None,
        }
    }

    /// Makes the request of a call one that the API takes.
    ///
    /// # Errors
    ///
    /// Names the field that cannot be written.
    pub fn wrap(&self, request: OutgoingRequest) -> Result<OutgoingRequest, InvalidArguments> {
        match self {
            Self::Soap(plan) => plan.wrap(request),
            Self::Xml(plan) => plan.wrap(request),
        }
    }
}
