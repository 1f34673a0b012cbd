//! What a client with a session is told besides its answer.

use super::*;

#[test]
fn what_is_told_waits_for_the_stream_rises_and_ends_with_the_answer() {
    on_cores(async |cores| {
        let first = &cores.all[0];
        let session = cores.session("acme", Revision::V20250326, Can::NONE);
        let (conversation, way) = legacy(first, &session);
        assert!(conversation.wants_progress() && !way.reports());
        for report in ["0", "0.5", "0.5", "0.25", "\"x\"", "2"] {
            conversation.tell(progress(report));
        }
        rt::timeout(Duration::from_secs(1), way.wanted()).await.unwrap();
        assert!(way.reports());
        let outlet = open_outlet(first, &way);
        let told: Vec<_> = got(&outlet)
            .iter()
            .map(|message| {
                let message = raw(message);
                let params = message.as_raw().get("params").unwrap();
                assert_eq!(params.get("progressToken").unwrap().text(), "\"t\"");
                params.get("progress").unwrap().text().to_owned()
            })
            .collect();
        assert_eq!(told, ["0", "0.5", "2"]);
        conversation.tell(progress("3"));
        assert_eq!(got(&outlet).len(), 1);
        way.close();
        conversation.tell(progress("4"));
        conversation.tell(log(LogLevel::Emergency));
        assert_eq!(got(&outlet), [""; 0]);
    });
}

#[test]
fn what_waits_for_a_stream_is_bounded() {
    on_cores(async |cores| {
        let first = &cores.all[0];
        let session = cores.session("acme", Revision::V20250326, Can::NONE);
        let (conversation, way) = legacy(first, &session);
        for report in 0..1000 {
            conversation.tell(progress(&report.to_string()));
        }
        assert_eq!(got(&open_outlet(first, &way)).len(), 64);
    });
}

#[test]
fn log_messages_are_as_grave_as_the_client_wants() {
    on_cores(async |cores| {
        let first = &cores.all[0];
        let session = cores.session("acme", Revision::V20251125, Can::NONE);
        let (conversation, way) = legacy(first, &session);
        let outlet = open_outlet(first, &way);
        let heard = || {
            for level in LogLevel::ALL {
                conversation.tell(log(level));
            }
            got(&outlet).len()
        };
        assert_eq!((conversation.log_level(), heard()), (Some(LogLevel::Info), 7));
        assert!(first.shared.sessions.set_log_level(&session, LogLevel::Alert.code()));
        assert_eq!((conversation.log_level(), heard()), (Some(LogLevel::Alert), 2));
        assert!(!first.shared.sessions.set_log_level(&session, LogLevel::Alert.code()));
        // It outlives the memory that it is in.
        let row = session.row();
        assert_eq!((row[0], row.last()), (2, Some(&LogLevel::Alert.code())));
    });
}

#[test]
fn only_a_client_that_can_be_sent_to_a_page_hears_that_its_user_was_there() {
    on_cores(async |cores| {
        let first = &cores.all[0];
        for (can, count) in [(Can::ELICITATION_URL, 1), (Can::ELICITATION_FORM, 0)] {
            let session = cores.session("acme", Revision::V20251125, can);
            let (conversation, way) = legacy(first, &session);
            let outlet = open_outlet(first, &way);
            conversation.tell(Told::ElicitationComplete(raw(r#"{"elicitationId":"e"}"#)));
            assert_eq!(got(&outlet).len(), count);
        }
    });
}
