// The label of code in all views: the short name, its file and line, its module. The name links to
// the caller/callee view of the function.
import type { JSX } from 'preact';
import { editorLink, fileLine, type CodeName } from '../../model/code';
import { go } from '../../state/app-state';
import './code-label.css';

export function openFunction(name: CodeName): void {
  go({ view: 'functions', fn: name.key, fn_module: name.modulePath });
}

export function codeTitle(name: CodeName): string {
  const place = name.file === '' ? '' : `\n${name.file}${name.line === 0 ? '' : `:${name.line}`}`;
  return `${name.full}${place}\n${name.modulePath === '' ? 'module unknown' : name.modulePath}`;
}

/** Show the name as plain text. Use it where a button does not fit. */
export function CodeText(props: { readonly name: CodeName; readonly inlined?: boolean }): JSX.Element {
  const { name } = props;
  const place = fileLine(name);
  return (
    <span class="code" title={codeTitle(name)}>
      <span class="code-name">{name.label}</span>
      {props.inlined === true ? <span class="code-inlined" title="inlined into its caller">inlined</span> : null}
      {place === '' ? null : <span class="code-place">{place}</span>}
      {name.module === '' ? null : <span class="code-module">{name.module}</span>}
    </span>
  );
}

export function CodeLink(props: { readonly name: CodeName; readonly inlined?: boolean }): JSX.Element {
  const { name } = props;
  if (name.id === null) {
    return <CodeText {...props} />;
  }
  return (
    <span class="code" title={codeTitle(name)}>
      <button type="button" class="link code-name" onClick={() => openFunction(name)}>
        {name.label}
      </button>
      {props.inlined === true ? <span class="code-inlined" title="inlined into its caller">inlined</span> : null}
      <span class="code-place">{fileLine(name)}</span>
      <span class="code-module">{name.module}</span>
    </span>
  );
}

/** The place of the code: opens the source view, and the editor if a pattern is set. */
export function PlaceLinks(props: {
  readonly name: CodeName;
  readonly editor: string | null;
  readonly hasSource: boolean;
}): JSX.Element | null {
  const { name } = props;
  const href = editorLink(props.editor, name);
  const text = fileLine(name);
  if (text === '') {
    return null;
  }
  return (
    <span class="code-links">
      {props.hasSource && name.file.startsWith('/') ? (
        <button
          type="button"
          class="link"
          title={`${name.file}: show the source with what its lines cost`}
          onClick={() => go({ view: 'source', path: name.file, line: String(name.line) })}
        >
          {text}
        </button>
      ) : (
        <span title={name.file}>{text}</span>
      )}
      {href === null ? null : (
        <a href={href} class="code-editor" title={`open ${name.file} in the editor`}>
          edit
        </a>
      )}
    </span>
  );
}
