// The label of code in all views: the short name, its file and line, its module. The name links to
// the caller/callee view of the function, the line to its source.
import type { JSX } from 'preact';
import { editorLink, fileLine, splitScope, type CodeName } from '../../model/code';
import type { CostKey } from '../../model/cost';
import { go } from '../../state/app-state';
import { useCapability, useMeta } from './meta-context';
import './code-label.css';

export function openFunction(name: CodeName): void {
  go({ view: 'functions', fn: name.key, fn_module: name.modulePath });
}

export function codeTitle(name: CodeName): string {
  const place = name.file === '' ? '' : `\n${name.file}${name.line === 0 ? '' : `:${name.line}`}`;
  return `${name.full}${place}\n${name.modulePath === '' ? 'module unknown' : name.modulePath}`;
}

/** For a file: the whole name, and its file and line. */
export function nameText(name: CodeName): string {
  return [name.full, fileLine(name)].filter((part) => part !== '').join(' ');
}

/** The module, unless the name begins with it: "redis-server+0x64da0". */
function moduleText(name: CodeName): string {
  return name.label.startsWith(`${name.module}+0x`) ? '' : name.module;
}

/**
 * The scopes of a name are omitted first: its end tells it from others. Of "insert [policy<1>]", what is in brackets
 * is kept longer than the name, which others have, too.
 */
function NameText(props: { readonly label: string }): JSX.Element {
  const [scope, last] = splitScope(props.label);
  const own = last.indexOf(' [');
  return (
    <>
      {scope === '' ? null : <span class="code-scope">{scope}</span>}
      {own < 0 ? (
        scope === '' ? last : <span class="code-last">{last}</span>
      ) : (
        <span class="code-last">
          <span class="code-base">{last.slice(0, own)}</span>
          <span class="code-own">{last.slice(own)}</span>
        </span>
      )}
    </>
  );
}

/** The file and line. In little room the line stays: it tells rows of one function apart. */
function PlaceText(props: { readonly name: CodeName }): JSX.Element {
  const text = fileLine(props.name);
  const end = props.name.line === 0 ? text.length : text.lastIndexOf(':');
  return (
    <span class="place">
      <span class="place-file">{text.slice(0, end)}</span>
      <span>{text.slice(end)}</span>
    </span>
  );
}

/** Show the name as plain text. Use it where a button does not fit. */
export function CodeText(props: { readonly name: CodeName; readonly inlined?: boolean }): JSX.Element {
  const { name } = props;
  const place = fileLine(name);
  return (
    <span class="code" title={codeTitle(name)}>
      <span class="code-name">
        <NameText label={name.label} />
      </span>
      {props.inlined === true ? <span class="code-inlined" title="inlined into its caller">inlined</span> : null}
      {place === '' ? null : <span class="code-place"><PlaceText name={name} /></span>}
      {moduleText(name) === '' ? null : <span class="code-module">{moduleText(name)}</span>}
    </span>
  );
}

/** `cost`: whose lines the source shows. */
export function CodeLink(props: { readonly name: CodeName; readonly inlined?: boolean; readonly cost?: CostKey }): JSX.Element {
  const { name } = props;
  if (name.id === null) {
    return <CodeText {...props} />;
  }
  return (
    <span class="code" title={codeTitle(name)}>
      <button type="button" class="link code-name" onClick={() => openFunction(name)}>
        <NameText label={name.label} />
      </button>
      {props.inlined === true ? <span class="code-inlined" title="inlined into its caller">inlined</span> : null}
      <span class="code-place">
        <PlaceLink name={name} cost={props.cost} />
      </span>
      <span class="code-module">{moduleText(name)}</span>
    </span>
  );
}

/** The file and line of code, as a link to the source view if the server can read files. */
function PlaceLink(props: { readonly name: CodeName; readonly cost: CostKey | undefined }): JSX.Element | null {
  const { name, cost } = props;
  const hasSource = useCapability('source');
  const text = fileLine(name);
  if (text === '') {
    return null;
  }
  if (!hasSource || !name.file.startsWith('/')) {
    return <span title={name.file}><PlaceText name={name} /></span>;
  }
  return (
    <button
      type="button"
      class="link"
      title={`${name.file}: show the source with what its lines cost`}
      onClick={() => go({ view: 'source', path: name.file, line: String(name.line), ...(cost === undefined ? {} : { cost }) })}
    >
      <PlaceText name={name} />
    </button>
  );
}

/** The place of the code: opens the source view, and the editor if a pattern is set. */
export function PlaceLinks(props: { readonly name: CodeName; readonly cost?: CostKey | undefined }): JSX.Element | null {
  const { name } = props;
  const { editor } = useMeta();
  const href = editorLink(editor, name);
  if (name.file === '') {
    return null;
  }
  return (
    <span class="code-links">
      <PlaceLink name={name} cost={props.cost} />
      {href === null ? null : (
        <a href={href} class="code-editor" title={`open ${name.file} in the editor`}>
          edit
        </a>
      )}
    </span>
  );
}
