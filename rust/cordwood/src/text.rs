//! Checks whether bytes are text. Logs are rarely text.

/// Checks whether `head` is UTF-8 without control bytes. Unless `head` is the whole file, it may
/// end in the middle of a character.
pub(crate) fn is_text(head: &[u8], is_whole: bool) -> bool {
    let is_utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => !is_whole && error.error_len().is_none(),
    };
    let is_control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c');
    is_utf8 && !head.iter().any(is_control)
}
