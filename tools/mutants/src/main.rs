//! Prints the mutants of Rust files as JSON, one a line. A mutant is a range of bytes and the text
//! that takes its place. `run.py` puts all of them into one build, with a switch for each.
//!
//! ```text
//! mutants ROOT FILE ...
//! ```

use std::path::Path;
use std::{env, fs, process};

use proc_macro2::Span;
use serde_json::json;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, ExprBinary, ImplItemFn, Lit, Pat, ReturnType, Signature, Stmt, TraitItemFn, Type, UnOp};

fn main() {
    let mut arguments = env::args().skip(1);
    let Some(root) = arguments.next() else {
        eprintln!("usage: mutants ROOT FILE ...");
        process::exit(2);
    };
    for file in arguments {
        let text = fs::read_to_string(Path::new(&root).join(&file)).expect("the file is text");
        let parsed = syn::parse_file(&text).expect("the file is Rust");
        let mut lister = Lister {
            file: &file,
            text: &text,
            places: Vec::new(),
            is_in_body: false,
        };
        lister.visit_file(&parsed);
    }
}

/// How `run.py` writes the switch of a mutant.
#[derive(Clone, Copy)]
enum Role {
    /// An expression: `if mutant { text } else { expression }`.
    Expression,
    /// A statement to delete.
    Statement,
    /// A condition with `let`, which cannot be in parentheses: it becomes false.
    Chain,
    /// The start of a function's body: the text is a statement.
    Body,
}

struct Lister<'a> {
    file: &'a str,
    text: &'a str,
    /// The types and functions around.
    places: Vec<String>,
    is_in_body: bool,
}

impl Lister<'_> {
    fn source(&self, node: &impl Spanned) -> &str {
        &self.text[node.span().byte_range()]
    }

    fn add(&self, role: Role, span: Span, text: &str, change: &str) {
        let range = span.byte_range();
        let role = match role {
            Role::Expression => "expression",
            Role::Statement => "statement",
            Role::Chain => "chain",
            Role::Body => "body",
        };
        println!(
            "{}",
            json!({
                "file": self.file, "line": span.start().line, "place": self.places.join("::"),
                "role": role, "start": range.start, "end": range.end, "text": text, "change": change,
            })
        );
    }

    /// Replaces an expression.
    fn replace(&self, node: &impl Spanned, text: &str) {
        let change = format!("{} -> {}", short(self.source(node)), short(text));
        self.add(Role::Expression, node.span(), text, &change);
    }

    fn condition(&mut self, condition: &Expr, is_loop: bool) {
        if has_let(condition) {
            let change = format!("{} -> false", short(self.source(condition)));
            self.add(Role::Chain, condition.span(), "", &change);
        } else {
            self.replace(condition, "false");
            // A loop that never ends takes long to notice, and is noticed.
            if !is_loop {
                self.replace(condition, "true");
            }
        }
    }

    fn function(&mut self, signature: &Signature, body: &Block, visit: impl FnOnce(&mut Self)) {
        if signature.constness.is_some() {
            return;
        }
        self.places.push(signature.ident.to_string());
        let was_in_body = std::mem::replace(&mut self.is_in_body, true);
        let output = match &signature.output {
            ReturnType::Type(_, output) => self.source(&**output).to_owned(),
            ReturnType::Default => String::new(),
        };
        let brace = body.brace_token.span.open();
        if output == "bool" {
            for value in ["true", "false"] {
                self.add(
                    Role::Body,
                    brace,
                    &format!("return {value};"),
                    &format!("the body -> {value}"),
                );
            }
        }
        if output.contains("Option<") {
            self.tail_of_block(body);
        }
        visit(self);
        self.is_in_body = was_in_body;
        self.places.pop();
    }

    fn tail_of_block(&self, block: &Block) {
        if let Some(Stmt::Expr(expression, None)) = block.stmts.last() {
            self.tail(expression);
        }
    }

    /// `Some(x)`, as a value of the function, becomes `None`.
    fn tail(&self, expression: &Expr) {
        match expression {
            Expr::Call(call) => match self.source(&*call.func) {
                "Some" => self.replace(expression, "None"),
                "Ok" => call.args.iter().for_each(|argument| self.tail(argument)),
                _ => {}
            },
            Expr::Block(block) => self.tail_of_block(&block.block),
            Expr::If(expression) => {
                self.tail_of_block(&expression.then_branch);
                if let Some((_, expression)) = &expression.else_branch {
                    self.tail(expression);
                }
            }
            Expr::Match(expression) => expression.arms.iter().for_each(|arm| self.tail(&arm.body)),
            Expr::Return(expression) => {
                if let Some(expression) = &expression.expr {
                    self.tail(expression);
                }
            }
            _ => {}
        }
    }
}

/// A text on one line, without its middle if it is long.
fn short(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let chars: Vec<char> = text.chars().collect();
    match chars.len() {
        ..=90 => text,
        len => chars[..60]
            .iter()
            .chain(&[' ', '…', ' '])
            .chain(&chars[len - 25..])
            .collect(),
    }
}

/// Whether a condition consists of `let`, alone or in a chain.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// The operator that takes the place of another.
fn swapped(operator: &BinOp) -> Option<&'static str> {
    Some(match operator {
        BinOp::Lt(_) => "<=",
        BinOp::Le(_) => "<",
        BinOp::Gt(_) => ">=",
        BinOp::Ge(_) => ">",
        BinOp::Eq(_) => "!=",
        BinOp::Ne(_) => "==",
        BinOp::And(_) => "||",
        BinOp::Or(_) => "&&",
        BinOp::Add(_) => "-",
        BinOp::Sub(_) => "+",
        BinOp::AddAssign(_) => "-=",
        BinOp::SubAssign(_) => "+=",
        _ => return None,
    })
}

fn is_left_out(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || matches!(&attribute.meta, syn::Meta::List(list)
                if list.path.is_ident("cfg") && matches!(list.tokens.to_string().as_str(), "test" | "windows" | "not (unix)" | "loom"))
    })
}

impl<'ast> Visit<'ast> for Lister<'_> {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !is_left_out(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        // What `Debug` prints is no promise.
        let is_debug = node
            .trait_
            .as_ref()
            .is_some_and(|(path, ..)| self.source(path).ends_with("Debug"));
        if is_left_out(&node.attrs) || is_debug {
            return;
        }
        let name = match &*node.self_ty {
            Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        self.places.push(name.unwrap_or_default());
        visit::visit_item_impl(self, node);
        self.places.pop();
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        if !is_left_out(&node.attrs) {
            self.function(&node.sig, &node.block, |lister| lister.visit_block(&node.block));
        }
    }

    fn visit_impl_item_fn(&mut self, node: &'ast ImplItemFn) {
        if !is_left_out(&node.attrs) {
            self.function(&node.sig, &node.block, |lister| lister.visit_block(&node.block));
        }
    }

    fn visit_trait_item_fn(&mut self, node: &'ast TraitItemFn) {
        if let Some(body) = &node.default {
            self.function(&node.sig, body, |lister| lister.visit_block(body));
        }
    }

    fn visit_stmt(&mut self, node: &'ast Stmt) {
        if let Stmt::Expr(expression, Some(_)) = node {
            let inner = match expression {
                Expr::Try(tried) => &*tried.expr,
                other => other,
            };
            let is_assignment =
                matches!(inner, Expr::Binary(binary) if swapped(&binary.op).is_none_or(|to| to.ends_with('=')));
            if matches!(inner, Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_)) || is_assignment {
                self.add(
                    Role::Statement,
                    node.span(),
                    "",
                    &format!("delete {}", short(self.source(node))),
                );
            }
        }
        visit::visit_stmt(self, node);
    }

    fn visit_expr(&mut self, node: &'ast Expr) {
        if !self.is_in_body {
            return;
        }
        match node {
            Expr::Binary(binary) => self.binary(node, binary),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                let text = self.source(&*unary.expr).to_owned();
                self.replace(node, &text);
            }
            Expr::Lit(literal) => {
                if let Lit::Int(number) = &literal.lit
                    && let Ok(value) = number.base10_parse::<u128>()
                {
                    self.replace(node, &format!("{}{}", value + 1, number.suffix()));
                }
            }
            Expr::If(expression) => self.condition(&expression.cond, false),
            Expr::While(expression) => self.condition(&expression.cond, true),
            Expr::MethodCall(call) => {
                let name = call.method.to_string();
                let other = match name.as_str() {
                    "min" => "max",
                    "max" => "min",
                    "any" => "all",
                    "all" => "any",
                    _ => "",
                };
                if !other.is_empty() {
                    let start = node.span().byte_range().start;
                    let method = call.method.span().byte_range();
                    let text = self.source(node);
                    let (before, after) = (&text[..method.start - start], &text[method.end - start..]);
                    let change = format!(".{name}{} -> .{other}", short(after));
                    self.add(
                        Role::Expression,
                        node.span(),
                        &format!("{before}{other}{after}"),
                        &change,
                    );
                }
            }
            Expr::Macro(call) if call.mac.path.is_ident("matches") => {
                let text = format!("!{}", self.source(node));
                self.replace(node, &text);
            }
            Expr::Return(_) => self.tail(node),
            // The length of an array is a constant.
            Expr::Repeat(repeat) => return self.visit_expr(&repeat.expr),
            Expr::Const(_) => return,
            _ => {}
        }
        visit::visit_expr(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        if let Pat::Guard(guard) = &node.pat {
            if has_let(&guard.guard) {
                self.add(
                    Role::Chain,
                    guard.guard.span(),
                    "",
                    &format!("{} -> false", short(self.source(&*guard.guard))),
                );
            } else {
                self.replace(&*guard.guard, "true");
                self.replace(&*guard.guard, "false");
            }
            self.visit_expr(&guard.guard);
        }
        self.visit_expr(&node.body);
    }

    fn visit_pat(&mut self, _: &'ast Pat) {}

    fn visit_type(&mut self, _: &'ast Type) {}

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

impl Lister<'_> {
    fn binary(&self, node: &Expr, binary: &ExprBinary) {
        if has_let(node) {
            return;
        }
        if let Some(operator) = swapped(&binary.op) {
            let operand = |side: &Expr| match side {
                Expr::Binary(_) | Expr::Cast(_) => format!("({})", self.source(side)),
                _ => self.source(side).to_owned(),
            };
            let text = format!("{} {operator} {}", operand(&binary.left), operand(&binary.right));
            self.replace(node, &text);
        }
    }
}
