// Every text of every element passes `shownText`, in all views: one place instead of each that
// shows a name. Values of fields do not change, because they are sent back.
import { options, type VNode } from 'preact';
import { shownText } from '../../base/shown-text';

const ATTRIBUTES = ['title', 'aria-label', 'placeholder', 'label'] as const;

function shownChildren(children: unknown): unknown {
  if (typeof children === 'string') {
    return shownText(children);
  }
  return Array.isArray(children) ? children.map(shownChildren) : children;
}

function makeSafe(vnode: VNode<Record<string, unknown>>): void {
  const { props } = vnode;
  if (props.children !== undefined && props.children !== null) {
    Object.assign(props, { children: shownChildren(props.children) });
  }
  if (typeof vnode.type === 'string') {
    for (const name of ATTRIBUTES) {
      const text = props[name];
      if (typeof text === 'string') {
        props[name] = shownText(text);
      }
    }
  }
}

export function showSafeText(): void {
  const { vnode: before } = options;
  options.vnode = (vnode: VNode<Record<string, unknown>>) => {
    makeSafe(vnode);
    before?.(vnode);
  };
}
